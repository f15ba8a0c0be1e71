#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/memory_limits.h"
#include "evald/error.h"
#include "jinja/template.h"
#include "tests/unit/support/caught.h"

namespace evald::jinja {
namespace {

std::string Fails(const std::string& source, TemplateOptions options = {},
                  const Json& variables = Json::object()) {
  return RefusalOf([&] { Template(source, options, "t").Render(variables); });
}

std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Statements that keep the value of `expression` under 2,000 names.
std::string Kept(const std::string& expression) {
  std::string out;
  for (int i = 0; i < 2000; ++i) {
    out += "{% set ns.a" + std::to_string(i) + " = (" + expression + ")|list %}";
  }
  return out;
}

// Templates that would take forever or fill the memory soon end in an error.
TEST(JinjaLimits, HostileTemplatesAreStopped) {
  for (const std::string& source : {
           std::string("{{ 'a' * 999999999999 }}"),
           std::string("{{ [1] * 9999999999 }}"),
           std::string(
               "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
           std::string("{{ range(10**12)|list }}"),
           std::string("{{ '%999999999d' % 1 }}"),
           std::string("{{ '{:999999999}'.format(1) }}"),
           std::string("{{ 'a'.center(99999999999) }}"),
           std::string("{{ 'x'|indent(9999999999, true) }}"),
           std::string("{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99999) %}"
                       "{% set ns.x = ns.x ~ ns.x %}{% endfor %}"),
           std::string("{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}"
                       "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}"),
           std::string("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
           std::string("{% macro f(x) %}{{ f(x) }}{{ f(x) }}{% endmacro %}{{ f(1) }}"),
           "{{ " + Repeat("(", 5000) + "1" + Repeat(")", 5000) + " }}",
           "{{ " + Repeat("not ", 5000) + "1 }}",
           "{{ " + Repeat("-", 5000) + "1 }}",
           "{{ 1" + Repeat(" + 1", 5000) + " }}",
           "{{ x" + Repeat(".a", 5000) + " }}",
           "{{ 1" + Repeat("|abs", 5000) + " }}",
           Repeat("{% if 1 %}", 5000) + Repeat("{% endif %}", 5000),
           Repeat("{% for i in [1] %}", 5000),
           std::string("{{ 'ab'|replace('', 'x' * 1000000)|replace('', 'y' * 1000000) }}"),
           std::string("{{ 9223372036854775807 + 1 }}"),
           std::string("{{ 10 ** 100 }}"),
       }) {
    const std::string message = Fails(source);
    EXPECT_EQ(message.rfind("t: line 1:", 0), 0u) << source.substr(0, 100) << "\n" << message;
  }
}

// A needle that nearly matches everywhere. The product of the sizes would be 10^12 comparisons.
TEST(JinjaLimits, SearchesTakeLinearTime) {
  const int64_t begin = MonotonicMicros();
  for (const std::string work :
       {"x.find(y)", "x.rfind(z)", "x.count(y)", "y in x", "x.replace(y, '')|length",
        "x.split(y)|length", "x.rsplit(z)|length", "x.partition(y)|length",
        "x.rpartition(z)|length"}) {
    const std::string names =
        "{% set x = 'a' * 2000000 %}{% set y = 'a' * 1000000 ~ 'b' %}"
        "{% set z = 'b' ~ 'a' * 1000000 %}";
    EXPECT_NE(Template(names + "{{ " + work + " }}", {}, "t").Render(Json::object()), "") << work;
  }
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(MonotonicMicros() - begin, 30'000'000);
  }
}

// The values of a dict of many keys are neither looked up nor replaced one behind the other.
TEST(JinjaLimits, LargeDictsTakeTimeInProportion) {
  if (!LimitsOwnMemory()) GTEST_SKIP() << "sanitizers make many values slow and large";
  Json pairs = Json::array();
  Json many = Json::object();
  auto& members = many.get_ref<Json::object_t&>();
  for (int i = 0; i < 100'000; ++i) {
    members.emplace_back("k" + std::to_string(i), i);
    pairs.push_back({"k" + std::to_string(99'999 - i % 100), i});
  }
  const int64_t begin = MonotonicMicros();
  EXPECT_EQ(Template("{{ d|tojson }}", {}, "t").Render({{"d", many}}).size(),
            ToLine(many).size() + 199'999u);
  EXPECT_EQ(Template("{{ dict(d.items()|list + p)|length }}", {}, "t")
                .Render({{"d", many}, {"p", pairs}}),
            "100000");
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(MonotonicMicros() - begin, 20'000'000);
  }
}

/// The most memory that this process has had, in bytes.
uint64_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

// Each makes many small values. Their own size is counted, not only that of their text.
TEST(JinjaLimits, SmallValuesCountAsTheMemoryThatTheyTake) {
  if (!LimitsOwnMemory()) GTEST_SKIP() << "sanitizers make many values slow and large";
  const uint64_t before = PeakBytes();
  const std::string many = "{% set x = range(50000)|list %}{% set ns = namespace() %}";
  for (const std::string& source : {
           std::string("{{ ('a '*20000000).split()|length }}"),
           std::string("{{ ('a '*20000000).rsplit()|length }}"),
           std::string("{{ ('a,'*20000000).split(',')|length }}"),
           std::string("{{ ('a,'*20000000).rsplit(',')|length }}"),
           many + Kept("x|slice(1000000)"),
           many + Kept("x|batch(1)"),
           many + Kept("[1]|batch(1000000, 0)"),
       }) {
    const std::string message = Fails(source);
    EXPECT_NE(message.find("the template "), std::string::npos) << source << "\n" << message;
  }
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(PeakBytes() - before, uint64_t{1} << 30);
  }
}

TEST(JinjaLimits, OutputIsBounded) {
  TemplateOptions options;
  options.limits.output_bytes_max = 1000;
  EXPECT_NE(Fails("{% for i in range(2000) %}x{% endfor %}", options).find("more than 1000 bytes"),
            std::string::npos);
}

TEST(JinjaErrors, NameTheLineAndWhatIsMissing) {
  const TemplateOptions harness = TemplateOptions::Harness();
  EXPECT_EQ(Fails("a\n{{ question }}", harness), "t: line 2: 'question' is undefined");
  EXPECT_EQ(Fails("{{ n|uper }}", harness, {{"n", 1}}),
            "t: line 1: the filter 'uper' is not known; did you mean 'upper'?");
  EXPECT_NE(Fails("{% include 'x' %}").find("'include' is not supported"), std::string::npos);
  EXPECT_NE(Fails("{% fro x in y %}").find("did you mean 'for'?"), std::string::npos);
  EXPECT_NE(Fails("{{ x.append(1) }}", {}, {{"x", Json::array()}}).find("'append' of list"),
            std::string::npos);
  EXPECT_NE(Fails("{{ ''.__class__ }}").find("'__class__' is not supported"), std::string::npos);
  EXPECT_NE(Fails("{% set ns = namespace() %}{% set ns.x = ns %}").find("cannot be kept"),
            std::string::npos);
  EXPECT_NE(Fails("{{ strftime_now('%Y') }}", TemplateOptions::ChatTemplate()).find("chat_date"),
            std::string::npos);
  EXPECT_NE(Fails("\xff").find("UTF-8"), std::string::npos);
}

TEST(Jinja, StrftimeNowShowsTheGivenDate) {
  TemplateOptions options = TemplateOptions::ChatTemplate();
  options.now = ChatDate{1721994000, true};
  EXPECT_EQ(Template("{{ strftime_now('%d %b %Y') }}", options, "t").Render(Json::object()),
            "26 Jul 2024");
}

// As datetime(2024, 7, 26, 11, 40).strftime() of CPython 3.11: a moment without a zone and without
// microseconds.
TEST(Jinja, StrftimeNowWritesTheTimeOfDayAsPythonDoes) {
  TemplateOptions options = TemplateOptions::ChatTemplate();
  options.now = ChatDate{1721994000, true};
  const auto shown = [&](const std::string& format) {
    return Template("{{ strftime_now(f) }}", options, "t").Render({{"f", format}});
  };
  EXPECT_EQ(shown("%Y-%m-%d %H:%M:%S"), "2024-07-26 11:40:00");
  EXPECT_EQ(shown("%-I:%M %p|%X|%c"), "11:40 AM|11:40:00|Fri Jul 26 11:40:00 2024");
  EXPECT_EQ(shown("[%z][%Z][%f]"), "[][][000000]");
  EXPECT_EQ(shown("%%H %"), "%H %");
  EXPECT_EQ(shown(""), "");
}

TEST(Jinja, StrftimeNowKnowsNoTimeOfADay) {
  TemplateOptions options = TemplateOptions::ChatTemplate();
  options.now = ChatDate{1769817600, false};
  const auto shown = [&](const std::string& format) {
    return Template("{{ strftime_now(f) }}", options, "t").Render({{"f", format}});
  };
  EXPECT_EQ(shown("%d %b %Y, %A, %j %%H %z"), "31 Jan 2026, Saturday, 031 %H ");
  for (const char* format :
       {"%H", "%Y %-I %p", "%M", "%T", "%X", "%c", "%f", "%EX", "%_3H", "%s", "%R", "%r", "%OS"}) {
    EXPECT_NE(Caught([&] { shown(format); }).message().find("chat_date names only a day"),
              std::string::npos)
        << format;
  }
}

TEST(Jinja, FreeNames) {
  const Template t("{% set a = b %}{% for c in d.e %}{{ c ~ f|default(g) }}{% endfor %}", {}, "t");
  EXPECT_EQ(t.FreeNames(), (std::vector<std::string>{"b", "d", "f", "g"}));
}

}  // namespace
}  // namespace evald::jinja
