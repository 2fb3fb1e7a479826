// What a page gets of an hour: GIVEN is put in by console_hour.py.
(() => {
  const hour = (window.hour = { events: 0, open: 0, stream: null });
  const real = window.fetch.bind(window);
  const { uids, phaseEvery, busy } = GIVEN;

  const dated = (body, type, status = 200) =>
    new Response(body, {
      status,
      headers: { "content-type": type, date: new Date().toUTCString() },
    });

  const stream = (signal) =>
    dated(
      new ReadableStream({
        start(controller) {
          hour.stream = controller;
          signal.addEventListener("abort", () => {
            controller.error(new Error("aborted"));
            if (hour.stream === controller) hour.stream = null;
          });
        },
      }),
      "text/event-stream",
    );

  const flow = () => {
    const written = hour.events * 8;
    const partitions = Array.from({ length: 8 }, (_, partition) => ({
      partition,
      end: hour.events,
      arrived: Math.max(0, hour.events - 500),
    }));
    const items = uids.map((uid, i) => ({
      uid,
      name: `pipeline-${String(i).padStart(3, "0")}`,
      reason: null,
      dead: 0,
      inputs: [{ name: "orders", written, arrived: Math.max(0, written - 4_000), partitions }],
      sinks: [{ stage: "load", name: "lake", behind: 500 }],
    }));
    return JSON.stringify({ at: new Date().toISOString(), items });
  };

  window.fetch = async (path, asked = {}) => {
    if (new Headers(asked.headers).get("accept") === "text/event-stream")
      return stream(asked.signal);
    if (String(path) === "/v1/flow") return dated(flow(), "application/json");
    hour.open += 1;
    try {
      const answer = await real(path, asked);
      return dated(await answer.text(), answer.headers.get("content-type"), answer.status);
    } finally {
      hour.open -= 1;
    }
  };

  hour.tell = (count) => {
    let text = "";
    for (let i = 0; i < count; i++) {
      const batch = ++hour.events;
      const at = batch % busy;
      const time = new Date().toISOString();
      const event = {
        specversion: "1.0",
        id: `e${batch}`,
        source: "/waybill",
        subject: "x",
        time,
        datacontenttype: "application/json",
        tenant: "default",
        stage: "load",
        type: "waybill.stage.committed",
        pipeline: `pipeline-00${at}`,
        data: {
          pipeline_uid: uids[at],
          generation: 1,
          sink: "lake",
          batch,
          rows: 8,
          started_at: time,
          version: { iceberg_snapshot_id: String(6150272777574000000n + BigInt(batch)) },
        },
      };
      if (batch % phaseEvery === 0) {
        event.type = "waybill.pipeline.phase";
        event.data = {
          pipeline_uid: uids[at],
          generation: 1,
          phase_from: "Running",
          phase: "Running",
          reason: "driver runs",
          actor: "stage_runner",
          error: null,
        };
      }
      text += `id: ${batch}\ndata: ${JSON.stringify(event)}\n\n`;
    }
    hour.stream.enqueue(new TextEncoder().encode(text));
  };
})();
