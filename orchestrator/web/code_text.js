// Where a text is code, and the kinds of its words: for colours only. No meaning depends on them.

const kWords = new Set(('and as assert async await break case class const continue def del elif else enum except finally fn for from function '
  + 'global if impl import in int is lambda let match mut new not or package pass pub public raise return self static struct switch this throw '
  + 'try use var void while with yield None True False null true false').split(' '));
// Strings (of three quotes, then of one), numbers, words.
const kRest = /(?<string>"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)/.source;
const kToken = {
  hash: new RegExp(`(?<comment>#[^\\n]*)|${kRest}`, 'g'),
  slashes: new RegExp(`(?<comment>//[^\\n]*|/\\*[^]*?(?:\\*/|$))|${kRest}`, 'g'),
};
const kFence = /```[^\n]*\n([^]*?)(?:```|$)/g;

function tokensOf(text, from, to, out) {
  const part = text.slice(from, to);
  // Two slashes divide in a language whose lines do not end with braces and semicolons.
  const kind = /[;{]\s*$/m.test(part) ? 'slashes' : 'hash';
  for (const found of part.matchAll(kToken[kind])) {
    const { comment, string, number } = found.groups;
    const word = comment !== undefined ? 'comment' : string !== undefined ? 'string' : number !== undefined ? 'number' : kWords.has(found[0]) ? 'word' : null;
    if (word) out.push({ begin: from + found.index, end: from + found.index + found[0].length, kind: word });
  }
}

/** The words of `text` that have a colour: {begin, end, kind} in order, with kind comment, string, number or
 * word. `whole`: all of the text is code; otherwise only what stands between fences (```). */
export function codeRanges(text, whole) {
  const ranges = [];
  const fences = [...text.matchAll(kFence)];
  for (const fence of fences) {
    const begin = fence.index + fence[0].indexOf('\n') + 1;
    tokensOf(text, begin, begin + fence[1].length, ranges);
  }
  if (fences.length === 0 && whole) tokensOf(text, 0, text.length, ranges);
  return ranges;
}
