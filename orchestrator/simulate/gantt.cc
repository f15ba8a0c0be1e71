#include "orchestrator/simulate/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "orchestrator/simulate/spans.h"

namespace evald {
namespace {

constexpr int kRowsMax = 64;
constexpr double kLeft = 74, kWidth = 880, kRight = 26, kTop = 80;
constexpr double kTitle = 26, kNodeGap = 3, kPolicyGap = 10;
constexpr double kSamePixel = 0.25;  // what is nearer than this is drawn as one

struct Colour {
  const char* name;
  const char* fill;
};
constexpr Colour kColours[] = {{"generate", "#2f7ed8"}, {"start", "#e8743b"}, {"load", "#bc5090"},
                               {"prepare", "#c9a227"},  {"score", "#2ca25f"}, {"idle", "#e2e2e2"}};

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return escaped;
}

// The distance of the axis marks: 1, 2 or 5 times a power of ten, so that there are at most ten
// marks.
double TickSeconds(double end) {
  const double least = end / 10;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= least) return step * power;
  }
  return 10 * power;
}

/// Draws policy after policy from the top down.
class Picture {
 public:
  Picture(const SimReport& report, double end_s) : report_(report), end_s_(end_s), y_(kTop) {
    shown_ = ShownDevices(cluster().devices(), kRowsMax);
    row_ = shown_.size() <= 8 ? 13 : shown_.size() <= 16 ? 9 : shown_.size() <= 32 ? 5.5 : 4;
  }

  // In `draw`, the first; the title is of it as well.
  void Add(const PolicyReport& policy, const SimResult& draw, double bound_s) {
    Text(kLeft, y_ + 16, "start", 13, "#111",
         fmt::format("<tspan font-weight=\"600\">{}</tspan>: {} s, {:.2f} of the bound, devices "
                     "idle {:.1f} %",
                     Escaped(policy.name), Whole(draw.makespan_s), draw.makespan_s / bound_s,
                     100 * IdleShare(draw)));
    y_ += kTitle;
    const double top = y_;
    const auto by_device = SpansByDevice(draw.spans, cluster().devices());
    int node = -1;
    for (const int device : shown_) {
      if (const int of = device / cluster().devices_per_node; of != node) {
        if (node >= 0) y_ += kNodeGap;
        node = of;
        node_tops_.push_back({node, y_});
      }
      Rect("idle", 0, draw.makespan_s);
      Row(by_device[static_cast<size_t>(device)]);
      y_ += row_;
    }
    NodeLabels();
    Flush();
    bound_line_ += fmt::format("M{:.1f} {:.1f}V{:.1f}", X(bound_s), top - 4, y_ + 3);
    y_ += kPolicyGap;
  }

  std::string Finish(double bound_s) {
    const double bottom = y_;
    Axis(bottom);
    const double x = X(bound_s);
    over_ +=
        fmt::format("<path d=\"M{:.1f} {}v8{}\" stroke=\"#c0392b\" stroke-dasharray=\"5 3\"/>\n", x,
                    kTop - 14, bound_line_);
    // Beside the line, where there is room.
    const bool right = x < kLeft + kWidth * 0.8;
    Text(x + (right ? 4 : -4), kTop - 6, right ? "start" : "end", 11, "#c0392b",
         fmt::format("bound {} s", Whole(bound_s)));
    const double height = bottom + 46;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
               "width=\"{0:.0f}\" "
               "height=\"{1:.0f}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
               kLeft + kWidth + kRight, height) +
           Head() + out_ + over_ + "</svg>\n";
  }

 private:
  const SimCluster& cluster() const { return report_.scenario.cluster; }
  double X(double seconds) const { return kLeft + seconds / end_s_ * kWidth; }
  static double IdleShare(const SimResult& draw) {
    double used = draw.generate_share;
    for (const auto& [cause, share] : draw.lost_shares) used += share;
    return std::max(0.0, 1 - used);
  }
  static std::string Whole(double seconds) {
    return seconds < 100 ? fmt::format("{:.1f}", seconds) : fmt::format("{:.0f}", seconds);
  }

  void Text(double x, double y, const char* anchor, int size, const char* fill,
            const std::string& text) {
    over_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" "
        "fill=\"{}\">{}</text>\n",
        x, y, anchor, size, fill, text);
  }

  std::string Head() const {
    const SimCluster& of = cluster();
    std::string head = fmt::format(
        "<text x=\"{}\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#111\">{} on {}: {} "
        "node{} of {} devices{}</text>\n",
        kLeft, Escaped(report_.scenario.workload.name), Escaped(of.name), of.nodes,
        of.nodes == 1 ? "" : "s", of.devices_per_node,
        static_cast<int>(shown_.size()) < of.devices() ? fmt::format(" ({} shown)", shown_.size())
                                                       : "");
    double x = kLeft;
    for (const Colour& colour : kColours) {
      head += fmt::format(
          "<rect x=\"{:.0f}\" y=\"38\" width=\"13\" height=\"13\" fill=\"{}\"/><text x=\"{:.0f}\" "
          "y=\"49\" "
          "font-size=\"12\" fill=\"#333\">{}</text>\n",
          x, colour.fill, x + 18, colour.name);
      x += 92;
    }
    return head;
  }

  // The parts of a row that have one colour become one path for the whole policy.
  void Rect(const std::string& name, double begin, double end) {
    paths_[name] += fmt::format("M{:.1f} {:.1f}H{:.1f}v{:.1f}H{:.1f}z", X(begin), y_, X(end),
                                row_ - 1, X(begin));
  }

  void Row(const std::vector<SimSpan>& spans) {
    const double same_s = kSamePixel / kWidth * end_s_;
    for (size_t i = 0; i < spans.size();) {
      double end = spans[i].end;
      size_t next = i + 1;
      for (; next < spans.size() && std::string_view(spans[next].name) == spans[i].name &&
             spans[next].begin - end < same_s;
           ++next) {
        end = spans[next].end;
      }
      Rect(spans[i].name, spans[i].begin, end);
      i = next;
    }
  }

  void NodeLabels() {
    const double apart = node_tops_.size() < 2 ? 1e9 : node_tops_[1].second - node_tops_[0].second;
    const auto every = static_cast<size_t>(std::max(1.0, std::ceil(13 / apart)));
    for (size_t i = 0; i < node_tops_.size(); i += every) {
      Text(kLeft - 8, node_tops_[i].second + 10, "end", 11, "#555",
           fmt::format("node {}", node_tops_[i].first));
    }
    node_tops_.clear();
  }

  void Flush() {
    for (const char* name : {"idle", "generate", "start", "load", "prepare", "score"}) {
      if (paths_[name].empty()) continue;
      const auto* colour =
          std::find_if(std::begin(kColours), std::end(kColours),
                       [&](const Colour& one) { return std::string_view(one.name) == name; });
      out_ += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", colour->fill, paths_[name]);
    }
    paths_.clear();
  }

  void Axis(double bottom) {
    const double step = TickSeconds(end_s_);
    std::string lines;
    for (double at = 0; at <= end_s_ * 1.0001; at += step) {
      lines += fmt::format("M{:.1f} {}V{:.1f}", X(at), kTop, bottom + 4);
      Text(X(at), bottom + 18, "middle", 11, "#555", Grouped(at));
    }
    Text(kLeft + kWidth / 2, bottom + 36, "middle", 11, "#555",
         "seconds since the checkpoint was there");
    out_ = fmt::format("<path d=\"{}\" stroke=\"#ececec\"/>\n", lines) + out_;
  }
  static std::string Grouped(double at) {
    return at < 10 ? fmt::format("{:.2g}", at) : fmt::format("{:.0f}", at);
  }

  const SimReport& report_;
  double end_s_;
  double y_;
  double row_ = 0;
  std::vector<int> shown_;
  std::map<std::string, std::string> paths_;
  std::vector<std::pair<int, double>> node_tops_;
  std::string out_, over_, bound_line_;
};

}  // namespace

std::string GanttSvg(const SimReport& report, const ScenarioResult& result) {
  double end_s = 1e-9;
  for (const PolicyOutcome& policy : result.policies) {
    if (!policy.reference) end_s = std::max(end_s, policy.draws[0].makespan_s);
  }
  Picture picture(report, end_s);
  const double bound_s = result.bounds[0].total_s();
  size_t shown = 0;
  for (const PolicyOutcome& policy : result.policies) {
    if (!policy.reference) picture.Add(report.policies[shown++], policy.draws[0], bound_s);
  }
  return picture.Finish(bound_s);
}

void WriteGantt(const std::filesystem::path& path, const SimReport& report,
                const ScenarioResult& result) {
  WriteOutput(path, GanttSvg(report, result));
}

}  // namespace evald
