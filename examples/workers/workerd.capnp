# Both examples on a plain workerd: `npm run build`, bundle each with
#   npx rolldown examples/workers/isolate.ts --file build/workers/isolate.js --external cloudflare:workers --platform browser
# and `ADMIN_TOKEN=… npx workerd serve examples/workers/workerd.capnp`.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "isolate", worker = .isolate),
    (name = "first", worker = .first),
    (name = "second", worker = .second),
  ],
  sockets = [
    (name = "isolate", address = "127.0.0.1:8787", http = (), service = "isolate"),
    # Two services are two isolates; both ask the object that lives with the first.
    (name = "first", address = "127.0.0.1:8788", http = (), service = "first"),
    (name = "second", address = "127.0.0.1:8789", http = (), service = "second"),
  ],
);

const isolate :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "../../build/workers/isolate.js")],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["enable_request_signal"],
  bindings = [(name = "ADMIN_TOKEN", fromEnvironment = "ADMIN_TOKEN")],
);

const first :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "../../build/workers/durable-object.js")],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "ADMIN_TOKEN", fromEnvironment = "ADMIN_TOKEN"),
    (name = "GATE", durableObjectNamespace = "Gate"),
  ],
  durableObjectNamespaces = [(className = "Gate", uniqueKey = "gate")],
  durableObjectStorage = (inMemory = void),
);

const second :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "../../build/workers/durable-object.js")],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "ADMIN_TOKEN", fromEnvironment = "ADMIN_TOKEN"),
    (name = "GATE", durableObjectNamespace = (className = "Gate", serviceName = "first")),
  ],
);
