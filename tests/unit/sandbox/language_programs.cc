#include "tests/unit/sandbox/language_programs.h"

namespace evald::sandbox_test {
namespace {

LanguagePrograms Bash() {
  return {"bash",
          "sum=0\nwhile read -r line; do for n in $line; do sum=$((sum + n)); done; done\n"
          "echo \"$sum\"\n",
          "double() { echo $(($1 * 2)); }\nset -e\n[[ $(double 4) = 8 ]]\n"
          "mapfile -t lines < <(printf 'b\\na\\n' | sort)\n[[ ${lines[0]} = a ]]\n",
          "double() { echo $(($1 * 3)); }\nset -e\n[[ $(double 4) = 8 ]]\n",
          "while :; do :; done\n",
          "x=0123456789\nwhile :; do x=$x$x; done\n",
          "for path in /usr/evald /etc/evald /evald.txt /usr/bin/evald; do\n"
          "  (echo x > $path) 2>/dev/null && echo write\ndone\n"
          "(cat /etc/shadow || cat /etc/passwd) >/dev/null 2>&1 && echo read\n"
          "(echo > /dev/tcp/127.0.0.1/22) 2>/dev/null && echo network\n"
          "(echo > /dev/udp/127.0.0.1/53) 2>/dev/null && echo network\n"
          "kill -9 1 2>/dev/null\nkill -9 $PPID 2>/dev/null\nexit 0\n",
          "while :; do echo 0123456789012345678901234567890123456789; done\n"};
}

LanguagePrograms C() {
  return {
      "c",
      "#include <stdio.h>\nint main(void) { long s = 0, x;\n"
      "  while (scanf(\"%ld\", &x) == 1) s += x;\n  printf(\"%ld\\n\", s); }\n",
      "#include <assert.h>\n#include <math.h>\nint main(void) { assert(sqrt(16.0) == 4.0); }\n",
      "#include <assert.h>\nint main(void) { assert(1 + 1 == 3); }\n",
      "int main(void) { volatile int x = 0; for (;;) x++; }\n",
      "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) {\n"
      "  char* p = malloc(1 << 20); if (!p) abort(); memset(p, 1, 1 << 20); } }\n",
      "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/socket.h>\n#include <unistd.h>\n"
      "int main(void) {\n"
      "  const char* paths[] = {\"/usr/evald\", \"/etc/evald\", \"/evald.txt\"};\n"
      "  for (int i = 0; i < 3; ++i)\n"
      "    if (open(paths[i], O_WRONLY | O_CREAT, 0644) >= 0) puts(\"write\");\n"
      "  if (open(\"/etc/shadow\", O_RDONLY) >= 0 || open(\"/etc/passwd\", O_RDONLY) >= 0)\n"
      "    puts(\"read\");\n"
      "  if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0)\n"
      "    puts(\"network\");\n"
      "  int pid = fork();\n  if (pid == 0) _exit(0);\n  if (pid > 0) puts(\"fork\");\n}\n",
      "#include <stdio.h>\nint main(void) { for (;;) puts(\"0123456789012345678901234567\"); }\n"};
}

LanguagePrograms Cpp() {
  return {
      "cpp",
      "#include <bits/stdc++.h>\nint main() { long s = 0, x;\n"
      "  while (std::cin >> x) s += x;\n  std::cout << s << std::endl; }\n",
      "#include <bits/stdc++.h>\nint main() { std::vector<int> v{3, 1, 2};\n"
      "  std::sort(v.begin(), v.end()); assert(v[0] == 1); }\n",
      "#include <stdexcept>\nint main() { throw std::runtime_error(\"wrong\"); }\n",
      "int main() { volatile int x = 0; for (;;) x = x + 1; }\n",
      "#include <string>\n#include <vector>\nint main() { std::vector<std::string> v;\n"
      "  for (;;) v.emplace_back(1 << 20, 'x'); }\n",
      "#include <fstream>\n#include <iostream>\n#include <sys/socket.h>\n#include <unistd.h>\n"
      "int main() {\n"
      "  for (const char* path : {\"/usr/evald\", \"/etc/evald\", \"/evald.txt\"})\n"
      "    if (std::ofstream(path)) std::cout << \"write\\n\";\n"
      "  if (std::ifstream(\"/etc/shadow\") || std::ifstream(\"/etc/passwd\"))\n"
      "    std::cout << \"read\\n\";\n"
      "  if (socket(AF_INET, SOCK_DGRAM, 0) >= 0) std::cout << \"network\\n\";\n"
      "  std::cout.flush();\n  int pid = vfork();\n  if (pid == 0) _exit(0);\n"
      "  if (pid > 0) std::cout << \"fork\\n\";\n}\n",
      "#include <cstdio>\nint main() { for (;;) std::puts(\"0123456789012345678901234567\"); }\n"};
}

LanguagePrograms Go() {
  return {
      "go",
      "package main\nimport \"fmt\"\nfunc main() {\n  sum, x := 0, 0\n  for {\n"
      "    if _, err := fmt.Scan(&x); err != nil { break }\n    sum += x\n  }\n"
      "  fmt.Println(sum)\n}\n",
      "package double_test\nimport \"testing\"\nfunc double(x int) int { return 2 * x }\n"
      "func TestDouble(t *testing.T) { if double(4) != 8 { t.Errorf(\"wrong\") } }\n",
      "package double_test\nimport \"testing\"\nfunc double(x int) int { return 3 * x }\n"
      "func TestDouble(t *testing.T) { if double(4) != 8 { t.Errorf(\"wrong\") } }\n",
      "package main\nfunc main() { x := 0; for { x++ } }\n",
      "package main\nfunc main() { var all [][]byte; for {\n"
      "  b := make([]byte, 1<<20); for i := range b { b[i] = 1 }; all = append(all, b) } }\n",
      "package main\nimport (\"fmt\"; \"os\"; \"syscall\")\nfunc main() {\n"
      "  for _, p := range []string{\"/usr/evald\", \"/etc/evald\", \"/evald.txt\"} {\n"
      "    if _, err := os.Create(p); err == nil { fmt.Println(\"write\") } }\n"
      "  for _, p := range []string{\"/etc/shadow\", \"/etc/passwd\"} {\n"
      "    if _, err := os.ReadFile(p); err == nil { fmt.Println(\"read\") } }\n"
      "  if _, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); err == nil {\n"
      "    fmt.Println(\"network\") }\n"
      "  if _, err := os.StartProcess(\"/bin/true\", []string{\"true\"}, &os.ProcAttr{});\n"
      "    err == nil { fmt.Println(\"fork\") }\n}\n",
      "package main\nimport \"fmt\"\nfunc main() { for { fmt.Println(\"01234567890123456\") } }\n"};
}

LanguagePrograms Java() {
  return {"java",
          "import java.util.*;\npublic class Summing {\n  static class Node { int value; }\n"
          "  public static void main(String[] a) {\n    Scanner in = new Scanner(System.in);\n"
          "    long s = 0;\n    while (in.hasNextLong()) s += in.nextLong();\n"
          "    System.out.println(s);\n  }\n}\n",
          "class Solution { int twice(int x) { return 2 * x; } }\n"
          "public class Main {\n  public static void main(String[] a) {\n"
          "    if (new Solution().twice(4) != 8) throw new AssertionError();\n"
          "    assert a.length == 0;\n  }\n}\n",
          "class Problem {\n  public static void main(String[] a) { assert 1 + 1 == 3; }\n}\n",
          "class Main { public static void main(String[] a) { int x = 0; while (true) x++; } }\n",
          "import java.util.*;\nclass Main { public static void main(String[] a) {\n"
          "  List<byte[]> all = new ArrayList<>(); while (true) all.add(new byte[1 << 20]); } }\n",
          "import java.io.*;\nimport java.net.*;\nclass Main {\n"
          "  public static void main(String[] a) {\n"
          "    for (String p : new String[] {\"/usr/evald\", \"/etc/evald\", \"/evald.txt\"}) {\n"
          "      try { new FileOutputStream(p).close(); System.out.println(\"write\"); }\n"
          "      catch (IOException e) { }\n    }\n"
          "    for (String p : new String[] {\"/etc/shadow\", \"/etc/passwd\"}) {\n"
          "      try { new FileInputStream(p).close(); System.out.println(\"read\"); }\n"
          "      catch (IOException e) { }\n    }\n"
          "    try { new Socket(\"127.0.0.1\", 22).close(); System.out.println(\"network\"); }\n"
          "    catch (Exception e) { }\n"
          "    try { new ServerSocket(0).close(); System.out.println(\"network\"); }\n"
          "    catch (Exception e) { }\n"
          "    try { new ProcessBuilder(\"/bin/true\").start(); System.out.println(\"fork\"); }\n"
          "    catch (IOException e) { }\n  }\n}\n",
          "class Main { public static void main(String[] a) {\n"
          "  while (true) System.out.println(\"0123456789012345678901234567890123456789\"); } }\n"};
}

LanguagePrograms JavaScript() {
  return {
      "javascript",
      "const text = require('fs').readFileSync('/dev/stdin', 'utf8');\n"
      "console.log(text.split(/\\s+/).filter(Boolean).map(Number).reduce((a, b) => a + b, 0));\n",
      "const assert = require('node:assert');\nassert.deepEqual([1, 2].map(x => 2 * x), [2, 4]);\n",
      "const assert = require('node:assert');\nassert.deepEqual([1, 2].map(x => x), [2, 4]);\n",
      "for (;;) {}\n",
      "const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1));\n",
      "const fs = require('fs');\n"
      "for (const p of ['/usr/evald', '/etc/evald', '/evald.txt'])\n"
      "  try { fs.writeFileSync(p, 'x'); console.log('write'); } catch (e) {}\n"
      "for (const p of ['/etc/shadow', '/etc/passwd'])\n"
      "  try { fs.readFileSync(p); console.log('read'); } catch (e) {}\n"
      "if (!require('child_process').spawnSync('/bin/true').error) console.log('fork');\n"
      "const s = require('net').connect(22, '127.0.0.1');\n"
      "s.on('connect', () => { console.log('network'); s.destroy(); });\ns.on('error', () => "
      "{});\n",
      "const line = '0123456789'.repeat(100);\nconst fs = require('fs');\n"
      "for (;;) fs.writeSync(1, line);\n"};
}

LanguagePrograms Lua() {
  return {"lua",
          "local s = 0\nfor line in io.lines() do\n"
          "  for n in line:gmatch('%-?%d+') do s = s + tonumber(n) end\nend\nprint(s)\n",
          "local function twice(x) return 2 * x end\nassert(twice(4) == 8)\n",
          "local function twice(x) return 3 * x end\nassert(twice(4) == 8)\n",
          "while true do end\n",
          "local all = {}\nwhile true do all[#all + 1] = string.rep('x' .. #all, 1 << 20) end\n",
          "for _, p in ipairs({'/usr/evald', '/etc/evald', '/evald.txt'}) do\n"
          "  if io.open(p, 'w') then print('write') end\nend\n"
          "for _, p in ipairs({'/etc/shadow', '/etc/passwd'}) do\n"
          "  if io.open(p, 'r') then print('read') end\nend\n"
          "if os.execute('true') then print('fork') end\n"
          "local found, socket = pcall(require, 'socket')\n"
          "if found and socket.connect('127.0.0.1', 22) then print('network') end\n",
          "while true do print('0123456789012345678901234567890123456789') end\n"};
}

LanguagePrograms Perl() {
  return {
      "perl",
      "my $s = 0;\nwhile (<STDIN>) { $s += $_ for split; }\nprint \"$s\\n\";\n",
      "sub twice { return 2 * $_[0]; }\ndie 'wrong' unless twice(4) == 8;\n",
      "sub twice { return 3 * $_[0]; }\ndie 'wrong' unless twice(4) == 8;\n",
      "while (1) {}\n",
      "my @all; while (1) { push @all, 'x' x (1 << 20) . scalar(@all); }\n",
      "use Socket;\nfor my $p ('/usr/evald', '/etc/evald', '/evald.txt') {\n"
      "  print \"write\\n\" if open(my $f, '>', $p);\n}\n"
      "for my $p ('/etc/shadow', '/etc/passwd') { print \"read\\n\" if open(my $f, '<', $p); }\n"
      "print \"network\\n\" if socket(my $s, PF_INET, SOCK_STREAM, 0);\n"
      "my $pid = fork();\nexit 0 if defined $pid && $pid == 0;\n"
      "print \"fork\\n\" if defined $pid;\n",
      "while (1) { print \"0123456789012345678901234567890123456789\\n\"; }\n"};
}

LanguagePrograms Php() {
  return {
      "php",
      "<?php\n$s = 0;\nforeach (preg_split('/\\s+/', stream_get_contents(STDIN)) as $x)\n"
      "  $s += intval($x);\necho $s, \"\\n\";\n",
      "<?php\nfunction twice($x) { return 2 * $x; }\n"
      "if (twice(4) !== 8) { throw new Exception('Test failed!'); }\n",
      "<?php\nfunction twice($x) { return 3 * $x; }\n"
      "if (twice(4) !== 8) { throw new Exception('Test failed!'); }\n",
      "<?php\nwhile (true) {}\n",
      "<?php\n$all = [];\nwhile (true) { $all[] = str_repeat(chr(count($all) % 256), 1 << 20); }\n",
      "<?php\nforeach (['/usr/evald', '/etc/evald', '/evald.txt'] as $p)\n"
      "  if (@file_put_contents($p, 'x') !== false) echo \"write\\n\";\n"
      "foreach (['/etc/shadow', '/etc/passwd'] as $p)\n"
      "  if (@file_get_contents($p) !== false) echo \"read\\n\";\n"
      "if (@fsockopen('127.0.0.1', 22)) echo \"network\\n\";\n"
      "if (@stream_socket_server('tcp://127.0.0.1:0')) echo \"network\\n\";\n"
      "if (@proc_open(['/bin/true'], [], $pipes)) echo \"fork\\n\";\n",
      "<?php\nwhile (true) { echo \"0123456789012345678901234567890123456789\\n\"; }\n"};
}

LanguagePrograms Python() {
  return {"python",
          "import sys\nprint(sum(int(x) for line in sys.stdin for x in line.split()))\n"
          "if __name__ != '__main__': raise SystemExit(3)\n",
          "def twice(x): return 2 * x\nassert twice(4) == 8\nexit()\n",
          "def twice(x): return 3 * x\nassert twice(4) == 8\n",
          "while True: pass\n",
          "x = []\nwhile True: x.append(bytearray(b'x' * (1 << 20)))\n",
          "import os, socket\nfor p in ('/usr/evald', '/etc/evald', '/evald.txt'):\n"
          "  try: open(p, 'w'); print('write')\n  except OSError: pass\n"
          "for p in ('/etc/shadow', '/etc/passwd'):\n"
          "  try: open(p); print('read')\n  except OSError: pass\n"
          "try: socket.socket(); print('network')\nexcept OSError: pass\n"
          "try:\n  if os.fork() == 0: os._exit(0)\n  print('fork')\nexcept OSError: pass\n",
          "while True: print('0123456789012345678901234567890123456789')\n"};
}

LanguagePrograms Ruby() {
  return {"ruby",
          "puts STDIN.read.split.map(&:to_i).sum\n",
          "def twice(x)\n  2 * x\nend\nraise 'wrong' unless twice(4) == 8\n",
          "def twice(x)\n  3 * x\nend\nraise 'wrong' unless twice(4) == 8\n",
          "loop {}\n",
          "all = []\nloop { all << ('x' * (1 << 20) + all.size.to_s) }\n",
          "require 'socket'\n['/usr/evald', '/etc/evald', '/evald.txt'].each do |p|\n"
          "  begin; File.write(p, 'x'); puts 'write'; rescue SystemCallError; end\nend\n"
          "['/etc/shadow', '/etc/passwd'].each do |p|\n"
          "  begin; File.read(p); puts 'read'; rescue SystemCallError; end\nend\n"
          "begin; TCPSocket.new('127.0.0.1', 22); puts 'network'; rescue StandardError; end\n"
          "begin; UDPSocket.new; puts 'network'; rescue StandardError; end\n"
          "begin\n  pid = fork { exit! 0 }\n  puts 'fork' if pid\nrescue SystemCallError\nend\n",
          "loop { puts '0123456789012345678901234567890123456789' }\n"};
}

LanguagePrograms Rust() {
  return {"rust",
          "use std::io::Read;\nfn main() {\n  let mut text = String::new();\n"
          "  std::io::stdin().read_to_string(&mut text).unwrap();\n"
          "  let sum: i64 = text.split_whitespace().map(|x| x.parse::<i64>().unwrap()).sum();\n"
          "  println!(\"{}\", sum);\n}\n",
          "fn twice(x: i32) -> i32 { 2 * x }\nfn main() { assert_eq!(twice(4), 8); }\n",
          "fn twice(x: i32) -> i32 { 3 * x }\nfn main() { assert_eq!(twice(4), 8); }\n",
          "fn main() { let mut x = 0u64; loop { x = x.wrapping_mul(3); if x == 1 { return; } } }\n",
          "fn main() { let mut all = Vec::new(); loop { all.push(vec![1u8; 1 << 20]); } }\n",
          "use std::fs::File;\nfn main() {\n"
          "  for p in [\"/usr/evald\", \"/etc/evald\", \"/evald.txt\"] {\n"
          "    if File::create(p).is_ok() { println!(\"write\"); }\n  }\n"
          "  for p in [\"/etc/shadow\", \"/etc/passwd\"] {\n"
          "    if File::open(p).is_ok() { println!(\"read\"); }\n  }\n"
          "  if std::net::UdpSocket::bind(\"127.0.0.1:0\").is_ok() { println!(\"network\"); }\n"
          "  if std::net::TcpStream::connect(\"127.0.0.1:22\").is_ok() { println!(\"network\"); }\n"
          "  if std::process::Command::new(\"/bin/true\").spawn().is_ok() { println!(\"fork\"); }\n"
          "}\n",
          "fn main() { loop { println!(\"0123456789012345678901234567890123456789\"); } }\n"};
}

LanguagePrograms TypeScript() {
  LanguagePrograms p = JavaScript();
  p.language = "typescript";
  p.sum =
      "import * as fs from 'fs';\nconst text: string = fs.readFileSync(0, 'utf8');\n"
      "const all: number[] = text.split(/\\s+/).filter(Boolean).map(Number);\n"
      "console.log(all.reduce((a: number, b: number) => a + b, 0));\n";
  p.asserts =
      "function twice(x: number): number { return 2 * x; }\n"
      "declare var require: any;\nconst assert = require('node:assert');\n"
      "assert.deepEqual(twice(4), 8);\n";
  p.fails =
      "function twice(x: number): number { return 3 * x; }\n"
      "declare var require: any;\nconst assert = require('node:assert');\n"
      "assert.deepEqual(twice(4), 8);\n";
  p.memory = "const all: any[] = []; for (;;) all.push(Buffer.alloc(1 << 20, 1));\n";
  return p;
}

}  // namespace

const std::vector<LanguagePrograms>& AllLanguagePrograms() {
  static const auto* const all = new std::vector<LanguagePrograms>{
      Bash(), C(),   Cpp(),    Go(),   Java(), JavaScript(), Lua(),
      Perl(), Php(), Python(), Ruby(), Rust(), TypeScript()};
  return *all;
}

}  // namespace evald::sandbox_test
