# SPDX-License-Identifier: Apache-2.0
"""kprof html: every view of the page is used in headless Chromium, and its numbers are those of kprof report --json."""
import collections
import functools
import gzip
import json
import re

import pytest

import gputraces
import harness
import pagedata
import test_agreement
import viewing

TRACES = harness.ROOT / "test" / "data" / "traces"
UNITS = {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1, "s": 1e3}


@pytest.fixture(scope="session")
def ask():
    """ask(page, search): what page_ask.py saw, of all or of one part; or another script with what it is given."""
    return lambda *args, script="page_ask": viewing.browser.ask(script, *args)


def page_of(folder, *traces):
    page = folder / "page.html"
    said = harness.cli("html", *traces, "-o", page)
    assert said.returncode == 0 and not said.stdout, said
    return page


def report(trace, *flags):
    return json.loads(harness.cli("report", trace, "--json", "-n", 0, *flags).stdout)


def milliseconds(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def same_rows(shown, said):
    """Names, times and calls as the report has them; a time is shown with at least three digits."""
    rows = {name: cells for name, *cells in shown}
    expected = {}
    for row in said["rows"]:  # the page leaves out the addresses of objects
        name = re.sub(" at 0x[0-9a-f]+", "", f"nn.Module: {row['path']}" if "path" in row else row["name"] or "(no name)")
        had = expected.setdefault(name, collections.Counter())
        had.update({key: row[key] for key in ("self_ms", "total_ms", "count")})
    assert set(rows) == set(expected) and len(rows) == len(shown)
    for name, row in expected.items():
        own, _, _, total, _, count = rows[name][:6]
        assert milliseconds(own) == pytest.approx(row["self_ms"], rel=6e-3, abs=1e-6), name
        assert milliseconds(total) == pytest.approx(row["total_ms"], rel=6e-3, abs=1e-6), name
        assert int(count.replace(",", "")) == row["count"], name


@pytest.fixture(scope="session")
def resnet(ours, ask, tmp_path_factory):
    """Of a training of ResNet-18: the trace, and what its page shows."""
    trace = ours("resnet18.py").trace
    return trace, ask(page_of(tmp_path_factory.mktemp("page"), trace), "conv")


def test_every_view_opens_without_an_error(resnet):
    _, said = resnet
    assert said["ready"] and said["console"] == [] and said["wide"]
    assert said["views"] == ["#findings", "#steps", "#timeline", "#flames", "#operators", "#kernels", "#modules", "#memory", "#communication"]
    assert said["colours"] > 20 and said["turned"] > 20  # something is drawn, in both schemes


def test_every_control_has_a_name_a_key_and_an_outline_and_no_view_is_cut_off(ours, ask, tmp_path):
    """A screen reader names a control by it. At 400 px the list of views is scrolled. One button turns each kind of page dark."""
    trace, ranks = ours("resnet18.py").trace, sorted((harness.ROOT / "test/data/traces").glob("gloo_rank*.gz"))
    for words, least in ((["html", trace], 40), (["html", *ranks], 40), (["stacks", "--html", trace], 2), (["memory", "--html", harness.ROOT / "test/data/traces/memory.pt.trace.json.gz"], 2)):
        page = tmp_path / "page.html"
        assert harness.cli(*words, "-o", page).returncode == 0
        said = ask(page, script="names_ask")
        assert said["controls"] >= least, (words, said)
        faults = {fault: said[fault] for fault in ("nameless", "cut", "wide", "unreached", "unseen") if said[fault]}
        assert not faults, (words, faults)
        assert said["turned"] == ["rgb(251, 251, 249)", "rgb(20, 22, 26)"], (words, said)


def test_operators_are_those_of_the_report(resnet):
    trace, said = resnet
    same_rows(said["all"], report(trace))
    assert said["back"] == said["all"]


def test_a_step_that_is_clicked_has_its_own_operators(resnet):
    trace, said = resnet
    whole = report(trace)
    first = whole["steps"]["first"]
    assert said["range"].startswith(f"Step {first}:") and said["pressed"] == ["true"] + ["false"] * (whole["steps"]["count"] - 1)
    assert len(said["bars"]) == whole["steps"]["count"]
    same_rows(said["step"], report(trace, "--step", first))


def test_a_part_of_a_step_has_one_colour_in_all_views(resnet):
    """The bars are divided by parts; they have an axis in one unit, and a line for the median."""
    trace, said = resnet
    for part in ("forward", "backward", "optimizer"):
        assert part in said["bars"][0] and len(said["colours of"][part]) >= 3 and len(set(said["colours of"][part])) == 1, said["colours of"]
    assert len(said["colours of"]["forward"]) == 4  # legends of bars, timeline and flame graph; the box of the flame graph
    assert len({tuple(colours) for colours in said["colours of"].values()}) == len(said["colours of"])
    median = re.search(r"median ([\d.]+ \w+)", said["axis"])
    assert milliseconds(median[1]) == pytest.approx(report(trace)["steps"]["median_ms"], rel=6e-3)
    ticks = re.findall(r"^([\d.]+) (\w+)$", said["axis"], re.M)
    assert len(ticks) > 2 and len({unit for _, unit in ticks}) == 1 and float(ticks[0][0]) == 0


KERNEL = "nvjet_sm90_tst_64x32"


@pytest.fixture(scope="module")
def of_a_gpu(real_gpu_trace, ask, tmp_path_factory):
    """of_a_gpu(search, part): a real GPU's trace, and what its page shows."""
    trace = real_gpu_trace("h200_training")
    page = page_of(tmp_path_factory.mktemp("page"), trace)
    return functools.cache(lambda search, part="all": (trace, ask(page, search, part)))


def test_a_steps_ranges_on_the_gpu_are_no_calls_of_operators(of_a_gpu):
    trace, said = of_a_gpu(KERNEL)
    first = report(trace)["steps"]["first"]
    of = {row["name"]: row["count"] for row in report(trace, "--step", first)["rows"]}
    assert said["console"] == [] and {name: int(cells[5].replace(",", "")) for name, *cells in said["step"]} == of


@pytest.mark.parametrize("search", [KERNEL, "Memcpy HtoD"])
def test_work_of_a_gpu_that_is_chosen_tells_its_launch(search, of_a_gpu):
    """What the file says of the first work of that name, the call of its correlation, and the op of its External id."""
    trace, said = of_a_gpu(search) if search == KERNEL else of_a_gpu(search, "timeline")
    events = gputraces.slices(gputraces.load(trace))
    found = min((e for e in events if e["cat"] in gputraces.WORK and search in e["name"]), key=lambda e: e["ts"])
    args = found["args"]
    call = next(e for e in events if e["cat"] in ("cuda_runtime", "cuda_driver") and e["args"].get("correlation") == args["correlation"])
    op = next(e for e in events if e["cat"] == "cpu_op" and e["args"].get("External id") == args["External id"])
    wanted = [f"stream {args['stream']}", f"launched by {call['name']}", f"op {op['name']}"]
    if found["cat"] == "kernel":
        wanted += ["{} {} x {} x {}".format(key, *args[key]) for key in ("grid", "block")]
        wanted += [f"{args['registers per thread']} registers a thread", f"est. occupancy {args['est. achieved occupancy %']} %", "shared memory a block"]
    else:
        wanted += [f"{args['bytes'] / float(found['dur']) / 1000:.3g} GB/s"]
    assert said["console"] == [] and [text for text in wanted if text not in said["match"]] == [], said["match"]


def test_a_table_is_sorted_and_searched(resnet):
    _, said = resnet
    calls = [int(row[6].replace(",", "")) for row in said["by calls"]]
    assert calls == sorted(calls, reverse=True) and len(calls) == len(said["all"])
    found = {row[0] for row in said["searched"]}
    assert found == {row[0] for row in said["all"] if "conv" in row[0].lower()} and found


def test_the_timeline_is_walked_by_keys_and_searched(resnet):
    _, said = resnet
    assert "lasts" in said["first"] and "lasts" in said["inside"]
    assert said["outside"] == said["first"] != said["inside"]
    assert said["unpicked"] == ""
    matches = re.fullmatch(r"1 of ([\d,]+) events", said["matches"])
    calls = sum(int(row[6].replace(",", "")) for row in said["all"] if "conv" in row[0].lower())
    assert int(matches[1].replace(",", "")) == calls and "conv" in said["match"].lower()


def test_an_area_of_the_timeline_has_the_sums_of_its_names_and_threads(resnet):
    _, said = resnet
    own = {name: (cells[0], cells[5]) for name, *cells in said["all"]}
    shown = [row for kind in ("Operators", "Python functions") for row in said["area"].get(kind, [])]
    assert {name for name, *_ in shown} == set(own)
    for name, self_time, _, _, count in shown:
        assert count == own[name][1] and milliseconds(self_time) == pytest.approx(milliseconds(own[name][0]), rel=6e-3, abs=1e-6), name
    assert any("main thread" in name for name, *_ in said["area"]["Threads"]) and said["no area"]
    event, area = said["area of"]
    assert re.search(r"lasts ([\d.]+ (?:[nµm]s|s))", event)[1] == re.match(r"Area: ([\d.]+ \w+) from ", area)[1] and area.endswith(", 1 thread")
    dragged, part = said["dragged"]
    whole = re.search(r" of ([\d.]+ (?:[nµm]s|s))", said["range"])[1]
    assert milliseconds(re.match(r"Area: ([\d.]+ \w+) from ", dragged)[1]) == pytest.approx(part * milliseconds(whole), rel=0.1)


def test_a_long_bar_is_drawn_behind_one_of_less_than_a_pixel(ask, tmp_path):
    """Bars that begin within one pixel are drawn as one, and the last of them may go on."""
    ops = [("small", 100, 0.5), ("slow", 100.6, 51000), ("late", 60000, 0.5), ("end", 60000.6, 9000)]
    events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 71000}]
    events += [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}} for name, ts, dur in ops]
    trace = tmp_path / "long.pt.trace.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    longest = ask(page_of(tmp_path, trace), script="bars_ask")["longest"]
    assert any(share == pytest.approx(51 / 71, abs=0.03) for share in longest), longest


def test_findings_are_those_of_advise(resnet):
    trace, said = resnet
    advice = json.loads(harness.cli("advise", trace, "--json").stdout)
    for finding in advice["findings"]:
        assert finding["change"] in said["findings"] and (finding["line"] or finding["frame"] or "") in said["findings"]
        assert f"About {finding['id']}" in said["findings"], finding["id"]  # what docs/reference/findings.md says of it
    for note in ("lines_by", "slowed_by", "ahead", "evaluated", "prompts", "no_op", "waited_why", "outside", "guessed", "crowded"):
        assert (advice[note] or "").lower() in said["findings"].lower()
    assert all(waited["what"].lower() in said["findings"].lower() for waited in advice["waited"])
    assert len(re.findall(r"\(\d+ of \d+ steps\)", said["findings"])) == len(advice["findings"])
    severities = [finding["severity"].upper() for finding in advice["findings"]]
    is_first = advice["crowded"] and all(finding["severity"] != "critical" and finding["step_ms"] <= advice["crowded_ms"] for finding in advice["findings"])
    if advice["crowded"]:
        severities.insert(0 if is_first else len(severities), "WARNING")
    assert re.findall("^(CRITICAL|WARNING)$", said["findings"], re.M) == severities


@pytest.mark.parametrize("loads_us, top", [(12_000, "The step waits for data"), (2000, "The training waits for CPU cores")])
def test_the_top_finding_is_what_advise_says_first(loads_us, top, ask, tmp_path):
    said = ask(page_of(tmp_path, test_agreement.core_waiter(tmp_path / "a.pt.trace.json", loads_us)), "", "timeline")
    assert re.search(r"Top finding\n(.+)", said["facts"])[1].startswith(top), said["facts"]


def test_four_numbers_stand_on_top(resnet):
    trace, said = resnet
    steps = report(trace)["steps"]
    titles = ["Step time", "Largest part", "Waiting", "Top finding"]
    assert [line for line in said["facts"].splitlines() if line in titles] == titles
    assert milliseconds(re.search(r"Step time\n(.+)", said["facts"])[1]) == pytest.approx(steps["median_ms"], rel=6e-3)
    parts = report(trace)["parts_ms_a_step"]
    largest, share = re.search(r"Largest part\n(.+) ([\d.]+) %", said["facts"]).groups()
    assert largest == max(parts, key=parts.get).replace("_", " ") and float(share) == pytest.approx(100 * max(parts.values()) / sum(parts.values()), abs=0.06)


def test_help_has_the_keys_and_closes_with_escape(everything):
    text, is_open, is_same = everything[1]["help"]
    assert "Timeline" in text and "zoom" in text and not is_open and is_same


def folded(trace, *flags):
    """Of `kprof stacks`: the sum, and what each frame has itself, in its unit."""
    own = collections.Counter()
    for line in harness.cli("stacks", trace, *flags).stdout.splitlines():
        path, value = line.rsplit(" ", 1)
        own[path.split(";")[-1]] += int(value)
    return sum(own.values()), own


def number(text):
    value, unit = text.split()
    return float(value) * {**UNITS, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}[unit]


@pytest.fixture(scope="session")
def everything(ours, ask, tmp_path_factory):
    """Of two steps with Python calls and memory."""
    trace = ours("transformer.py", KPROF_WITH_STACK="1", KPROF_PROFILE_MEMORY="1").trace
    return trace, ask(page_of(tmp_path_factory.mktemp("page"), trace), "linear")


def test_flame_graphs_are_those_of_stacks(everything):
    trace, said = everything
    assert said["console"] == [] and list(said["metrics"]) == ["Wall time", "Allocations"]
    for metric, flag, unit in (("Wall time", "cpu", 1e-3), ("Allocations", "memory", 1)):
        whole, own = folded(trace, "--metric", flag)
        shown = {name: number(itself) for name, itself, _ in said["metrics"][metric]}
        for name, value in own.items():
            assert shown[name] == pytest.approx(value * unit, rel=1e-2, abs=0.01 if unit < 1 else 1), (metric, name)
        if flag == "cpu":
            assert number(said["told"]["flame-told"].split(": ")[1]) == pytest.approx(whole * unit, rel=6e-3)
    assert said["zoomed"] and said["zoomed back"] and said["hits"] and "frames" in said["flame matches"]


def test_callers_and_callees_of_a_frame_are_all_its_calls(everything):
    """Its own box is as wide as the drawing, with callers above it, and its time is that of all its calls."""
    _, said = everything
    told, boxes = said["calls"]
    name, total = re.fullmatch(r"(.+): ([\d.]+ \w+)\. Above: who calls it\. Below: what it calls\.", told).groups()
    assert total == next(row[2] for row in said["metrics"]["Wall time"] if row[0] == name)
    widest = max(width for _, width in boxes)
    whole = sorted(row for row, width in boxes if width > widest - 0.5)
    assert whole[0] > 0 and any(row > whole[-1] for row, _ in boxes) and said["all frames"] == ""


def test_a_chosen_step_is_followed_by_every_view(everything):
    trace, said = everything
    first = report(trace)["steps"]["first"]
    step = report(trace, "--step", first)
    assert number(said["step told"]["flame-told"].split(": ")[1]) == pytest.approx(step["wall_ms"], rel=0.01)
    same_rows(said["step"], step)
    assert said["step told"]["flame-told"] != said["told"]["flame-told"] and said["step told"]["split"].startswith(f"Step {first}:")
    said_modules = json.loads(harness.cli("report", trace, "--json", "-n", 0, "--by", "module", "--step", first).stdout)["rows"]
    shown = {row[0]: row for row in said["step modules"]}
    for row in said_modules:
        name = row.get("path", row["name"]) or "outside any module"
        wanted = [row["self_ms"], row.get("forward_ms", row["total_ms"]), row.get("backward_ms", 0), row["total_ms"]]
        assert [milliseconds(text or "0 ns") for text in shown[name][1:5]] == [pytest.approx(ms, rel=6e-3, abs=2e-3) for ms in wanted], name
    assert len(shown) == len(said_modules)


def test_memory_is_that_of_kprof_memory(everything):
    trace, said = everything
    device = json.loads(harness.cli("memory", trace, "--json").stdout)["devices"][0]
    peak = re.match(r"Peak: ([\d.]+ \w+) at ([\d.]+ \w+)", said["told"]["curve-told"])
    assert number(peak[1]) == pytest.approx(device["peak"]["total"], rel=6e-3)
    at = re.search(r"peak .* at ([\d.]+ \w+) after", harness.cli("memory", trace, "--step", "all").stdout)
    assert milliseconds(peak[2]) == pytest.approx(milliseconds(at[1]), rel=6e-3)  # after the profiler's start, as in all views
    assert sum(number(row[1]) for row in said["live"]) == pytest.approx(device["peak"]["total"], rel=2e-2)
    assert said["begin"][1] in said["begin"][0] and said["peak"] == said["told"]["curve-told"] and " at " in said["tip"] and "Activation: " in said["tip"]


def test_the_curve_is_the_same_in_the_page_and_in_files_of_its_own(everything, ask, tmp_path):
    """One script draws it; the page has other slices of the time, since it follows the width."""
    trace, _ = everything
    files = [page_of(tmp_path, trace), tmp_path / "memory.html", tmp_path / "memory.svg"]
    for path, flag in zip(files[1:], ("--html", "--svg")):
        assert harness.cli("memory", trace, flag, "--step", "all", "-o", path).returncode == 0
    page, html, svg = ask(*files, script="curve_ask")
    assert page["turned"] and html["turned"]
    assert page["console"] == html["console"] == svg["console"] == []
    for said in (page, html, svg):
        assert said["first"]["value"].startswith("Peak: ") and said["first"]["fits"] and said["narrow"]["fits"]
        assert said["narrow"]["width"] < 430 < said["first"]["width"]
        assert len({said[when]["now"] for when in ("first", "key", "click")}) == 3  # the moment moved
        assert any(": " in text for text in said["first"]["texts"]) and said["first"]["steps"] > 0
    for said in (page, html, svg):  # the page is a little narrower: where the time is at a limit, it has every second tick
        said["first"]["value"] = said["first"]["value"].split(" at ")[0]
        said["first"]["texts"] = [text for text in said["first"]["texts"] if not re.fullmatch(r"[\d.]+ (us|ms|s)", text)]
    for key in ("texts", "colours", "steps", "value"):
        assert page["first"][key] == html["first"][key] == svg["first"][key], key
    for one, other in ((page, html), (html, svg)):
        assert [kind for kind, _ in one["first"]["areas"]] == [kind for kind, _ in other["first"]["areas"]]
        assert all(abs(a[1] - b[1]) <= 2 for a, b in zip(one["first"]["areas"], other["first"]["areas"]))


def test_findings_and_steps_need_no_column(everything, tmp_path):
    """A browser reads the head of a trace and paints it before it reads the events."""
    first, second, *_ = pagedata.blocks(page_of(tmp_path, everything[0]))
    name, head, columns = first
    assert (name, columns) == ("trace", {}) and head["advice"]["steps"] == len(head["steps"]) > 0 and head["run"]["wall"] > 0
    name, nothing, columns = second
    lanes = [lane for lane in head["lanes"] if not lane[3]]
    assert (name, nothing) == ("columns", None) and sum(lane[6] for lane in head["lanes"]) == len(columns["name"])
    ends = [sum(pagedata.wide(columns, "after")[first:first + count]) + pagedata.wide(columns, "span")[first + count - 1] for *_, first, count in lanes]
    assert max(ends) <= head["end"]


def test_modules_are_boxes_whose_areas_are_their_times(everything):
    _, said = everything
    outer = max(said["boxes"], key=lambda box: box[1])
    leaves = [box for box in said["boxes"] if not any(other[0].startswith(box[0].split(":")[0] + ".") for other in said["boxes"])]
    shares = {title: float(title.rsplit(", ", 1)[1].rstrip(" %")) for title, _ in said["boxes"]}
    assert shares[outer[0]] > 50 and len(leaves) > 3 and len(said["inside"]) > 1
    largest = max(leaves, key=lambda box: box[1])
    assert shares[largest[0]] >= 0.5 * max(shares[title] for title, _ in leaves)


def test_a_box_has_its_name_above_the_boxes_in_it(everything):
    _, said = everything
    assert said["outside the map"] == []
    assert said["labels"] and [name for name, is_above in said["labels"] if not is_above] == []


def test_what_is_not_there_says_what_to_record(resnet, everything):
    assert set(resnet[1]["empty"]) == {"kernels-none", "modules-none", "memory-none", "comm-none"}
    assert set(everything[1]["empty"]) == {"kernels-none", "comm-none"}
    assert resnet[1]["unnamed"] == everything[1]["unnamed"] == []


@pytest.mark.parametrize("name", ["full", "stack", "noschedule", "gloo_rank0", "memory"])
def test_traces_of_torch_open(name, ask, tmp_path):
    trace = TRACES / f"{name}.pt.trace.json.gz"
    said = ask(page_of(tmp_path, trace, "--step", "all"), "add")
    assert said["ready"] and said["console"] == []
    same_rows(said["all"], report(trace, "--step", "all"))
    if name == "gloo_rank0":
        assert "for other ranks or for the network" in said["comm note"]


def test_one_page_shows_several_ranks(ask, tmp_path):
    page = page_of(tmp_path, TRACES / "gloo_rank0.pt.trace.json.gz", TRACES / "gloo_rank1.pt.trace.json.gz")
    said = ask(page, "add")
    assert said["ready"] and said["console"] == [] and page.read_text().count('class="trace"') == 2
    assert [row[0].split(" on ")[0] for row in sorted(said["ranks"])] == ["rank 0", "rank 1"]
    matched = int(re.match(r"(\d+) collectives are in all 2 traces", said["ranks note"])[1])
    assert " Ranks shows " in said["comm note"] and "network" not in said["comm note"]
    assert re.search(r"Largest part\ncommunication [\d.]+ %", said["facts"]) and "communication" in said["colours of"], said["facts"]
    assert 0 < matched == sum(int(row[-1]) for row in said["ranks"]) <= sum(int(row[2]) for row in said["collectives"])


def event(name, cat, ts, dur, tid=1):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}


def late_rank(folder, number, wait, busy=900):
    """Three steps of 1 ms of a rank that waits so many us of each in a collective."""
    events = [e for i in range(3) for e in (event(f"ProfilerStep#{i}", "user_annotation", 1000 * i, 1000), event("aten::mm", "cpu_op", 1000 * i, busy - wait),
                                            event("gloo:all_reduce", "user_annotation", 1000 * i + busy - wait, wait, tid=2))]
    path = folder / f"rank{number}.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": number, "world_size": 2}, "traceEvents": events}))
    return path


def test_the_page_of_all_ranks_has_the_verdict_of_advise(ask, tmp_path):
    """Rank 1 is late. Each trace alone can only say that its step waits for other ranks or for the network."""
    traces = [late_rank(tmp_path, 0, 500), late_rank(tmp_path, 1, 70)]
    advised = harness.cli("advise", *traces).stdout
    for order in (traces, traces[::-1]):
        said = ask(page_of(tmp_path, *order), "mm", "all" if order is traces else "findings")
        assert said["ready"] and said["console"] == []
        what = re.search(r"  t(he step waits for the network \(.* 3 of 3 collectives\))", advised)[1]  # the page begins with the late rank
        assert what in said["findings"] and "for other ranks" not in said["findings"]
        assert "which arrived last at 3 of 3 collectives" in said["findings"]
        cause = re.search(r"^ {9}(rank \d spends 0\.8 ms .*; aten::mm takes 0\.8 ms .*)\n", advised, re.M)[1]
        assert said["ranks note"].endswith(f" Why: {cause}.") and cause in said["findings"]


def test_the_page_of_a_job_begins_with_the_late_rank_and_not_with_healthy(ask, tmp_path):
    traces = [late_rank(tmp_path, 0, 500, 980), late_rank(tmp_path, 1, 20, 980)]
    assert "Healthy" in ask(page_of(tmp_path, traces[1]), "mm", "findings")["findings"]
    said = ask(page_of(tmp_path, *traces), "mm", "findings")["findings"]
    assert said.split("\n", 1)[1].startswith("The other rank waits for ") and "last at 3 of 3 collectives" in said and "Healthy" not in said
    assert "aten::mm takes 1.0 ms per step there, 0.5 ms on the other" in said


def test_what_one_step_has_is_told_with_that_step(ask, tmp_path):
    """Its cost is no cost of each step."""
    events, at = [], 0
    for i in range(20):
        took = 90_000 if i == 12 else 10_000
        events += [event(f"ProfilerStep#{i}", "user_annotation", at, took), event("aten::mm", "cpu_op", at, took - 100)]
        at += took
    path = tmp_path / "one.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    said = ask(page_of(tmp_path, path), "mm", "findings")
    assert re.search(r"\b80(\.0+)? ms once, in step 12, ", said["findings"]) and " a step, " not in said["findings"], said["findings"]


EVIL = ["</script><b class=evil>", "<img src=x onerror=window.evil=1>", "\"'`${window.evil=1}", "a\x1b[31m\x07\u2028", "b\0c", "x" * 200000, "]]>", "\ud800", ""]


def evil_trace(path):
    """Names that would leave the page, and times that no clock gives."""
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1000 + 10 * i, "dur": 5, "args": {"External id": i + 1}}
              for i, name in enumerate(EVIL)]
    events += [{"ph": "X", "cat": cat, "name": f"n{i}", "pid": pid, "tid": tid, "ts": ts, "dur": dur}
               for i, (cat, pid, tid, ts, dur) in enumerate([
                   ("cpu_op", 1, 1, -1e15, 3), ("cpu_op", 1, 2, 9e15, 9e15), ("kernel", 0, 7, 5, -3), ("python_function", 2, 2, 0, 0),
                   ("user_annotation", "</script>", "<b>", 1, 1e300), ("cpu_op", 1, 1, 1000, 1e12)])]
    path.write_text(json.dumps({"schemaVersion": 1, "traceName": "</script>", "traceEvents": events}))
    return path


def test_no_text_of_a_trace_leaves_the_page(ask, tmp_path):
    trace = evil_trace(tmp_path / "</title><b class=evil>.json".replace("/", "_"))
    page = page_of(tmp_path, trace)
    text = page.read_text()
    assert "window.evil" not in text and len(text) < 300000
    said = ask(page, "evil")
    assert said["ready"] and said["console"] == [] and said["foreign"] == 0
    assert any(row[0] == EVIL[0] for row in said["all"]) and any("\\x1b" in row[0] for row in said["all"])


def test_what_is_no_trace_is_one_line_and_no_page(tmp_path):
    whole = gzip.decompress((TRACES / "plain.pt.trace.json.gz").read_bytes())
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "foreign.json").write_text('{"a": 1}')
    for path in sorted(tmp_path.iterdir()):
        page = tmp_path / "page.html"
        said = harness.cli("html", path, "-o", page)
        assert said.returncode == 1 and said.stderr.count("\n") == 1 and not page.exists(), said
    (tmp_path / "torn.json").write_bytes(whole[:len(whole) // 2])
    said = harness.cli("html", tmp_path / "torn.json", "-o", tmp_path / "page.html")
    assert said.returncode in (0, 1) and said.stderr.count("\n") <= 2
