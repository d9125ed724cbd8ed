using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "signals", worker = .signals), (name = "old", worker = .old)],
  sockets = [
    (name = "http", address = "127.0.0.1:0", http = (), service = "main"),
    (name = "signals", address = "127.0.0.1:0", http = (), service = "signals"),
    (name = "old", address = "127.0.0.1:0", http = (), service = "old"),
  ],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "../../../build/runtimes/workerd.js")],
  compatibilityDate = "2026-11-01",
);

const signals :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "../../../build/runtimes/workerd.js")],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["enable_request_signal"],
);

# Before 2024-10-14 a request that another one wakes goes on in that one's place, or never.
const old :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "../../../build/runtimes/workerd.js")],
  compatibilityDate = "2024-01-01",
);
