-- What wrk sends, by the environment, and what it found, as one JSON line after its own report. Nothing here runs per request unless
-- requests are pipelined or their paths differ.
--   WRK_METHOD  WRK_BODY (a file)  WRK_FIELDS (lines of "Name: value")  WRK_PIPELINE (requests sent at once)  WRK_PATHS (a file with a path a line, by turns)
local method, body, fields, depth = os.getenv("WRK_METHOD"), os.getenv("WRK_BODY"), os.getenv("WRK_FIELDS"), tonumber(os.getenv("WRK_PIPELINE") or "1")

wrk.method = method or "GET"
if body then
  local file = assert(io.open(body, "rb"))
  wrk.body = file:read("*a")
  file:close()
end
for name, value in string.gmatch(fields or "", "([^:\n]+): ([^\n]*)") do
  wrk.headers[name] = value
end

local paths = os.getenv("WRK_PATHS")
if paths then
  local requests, at = {}, 0
  function init()
    for path in io.lines(paths) do
      requests[#requests + 1] = wrk.format(nil, path)
    end
  end
  function request()
    at = at % #requests + 1
    return requests[at]
  end
elseif depth > 1 then
  local batch
  function init()
    local one = wrk.format()
    batch = string.rep(one, depth)
  end
  function request()
    return batch
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('\n{"requests":%d,"us":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,"p50_us":%d,"p99_us":%d}\n',
    summary.requests, summary.duration, summary.bytes, errors.connect, errors.read, errors.write, errors.status, errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
