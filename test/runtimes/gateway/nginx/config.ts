/** One instance behind nginx. */
export interface NginxUpstream {
  /** Also the name of the file that says it is ready. */
  readonly name: string
  readonly port: number
}

export interface NginxOptions {
  /** For the process's own files and, below `ready/`, those of `readiness.sh`. */
  readonly dir: string
  readonly port: number
  readonly upstreams: readonly NginxUpstream[]
}

/**
 * nginx as it is packaged has no active probes, and a reload closes idle connections of clients (before 1.27.4). What it
 * can do for each request is to look whether a file is there: one file for each ready instance, one upstream group for
 * each set of ready instances, and no reload.
 */
export function nginxConfig({ dir, port, upstreams }: NginxOptions): string {
  const groups = subsetsOf(upstreams).map(
    (ready) => `
  upstream ready${ready.map(({ name }) => `_${name}`).join('')} {
    ${ready.map((each) => `server 127.0.0.1:${each.port} max_fails=0;`).join('\n    ')}
    keepalive 64;
    # Shorter than what the instances keep an idle connection for (5 s): the end that may send is to close first.
    keepalive_timeout 2s;
  }`,
  )
  return `daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => `${what}_temp_path ${dir}/${what};`).join('\n  ')}
  keepalive_requests 1000000;
${groups.join('\n')}

  server {
    listen 127.0.0.1:${port};
    set $ready ready;
    ${upstreams.map(({ name }) => `if (-f ${dir}/ready/${name}) { set $ready "\${ready}_${name}"; }`).join('\n    ')}
    if ($ready = ready) { return 503; }
    location / {
      proxy_pass http://$ready;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      # A request that was sent is sent again only if it is safe to: never a POST.
      proxy_next_upstream error timeout;
      proxy_next_upstream_tries 2;
    }
  }
}
`
}

/** Every set of them but the empty one, each in their order. */
function subsetsOf<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: 2 ** all.length - 1 }, (_, n) => all.filter((_each, bit) => ((n + 1) >> bit) % 2 === 1))
}
