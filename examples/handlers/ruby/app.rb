# A small app with one job, for the tests: ruby app.rb SECRET. It prints its address.

require "json"
require "puma"
require "puma/server"
require "rack"
require_relative "solotick"

# The app answers with the code of ?codes= that is next for the job, after ?take= milliseconds.
class App
  def initialize
    @counts = Hash.new(0)
    @ends = {} # job -> what says that its work has ended
    @closed = [] # jobs whose answer 404 was closed, as Rack wants it
    @lock = Mutex.new
  end

  def call(env)
    query = Rack::Utils.parse_query(env["QUERY_STRING"])
    case env["PATH_INFO"]
    when "/count"
      return reply(200, @counts[query["job"]])
    when "/end"
      @ends.delete(query["job"]).call(query["ok"] == "yes")
      return reply(200, {})
    end
    job = env["HTTP_SOLOTICK_JOB"]
    n = @lock.synchronize { @counts[job] += 1 }
    sleep query["take"].to_i / 1000.0
    codes = query.fetch("codes", "200").split(",")
    case code = codes[[n, codes.length].min - 1]
    when "throw"
      raise "broken"
    when "torn"
      [200, { "content-type" => "text/plain" }, Enumerator.new { |parts| parts << "the beginning"; raise "broken" }]
    when "later"
      @ends[job] = env["solotick.later"].call
      reply(202, { n: n })
    when "404"
      status, headers, parts = reply(404, { n: n })
      [status, headers, Rack::BodyProxy.new(parts) { @closed << job }]
    else
      raise "the answer before was not closed" if code == "201" && !@closed.include?(job)

      reply(code.to_i, { n: n })
    end
  end

  def reply(status, body)
    [status, { "content-type" => "application/json" }.merge(status == 503 ? { "retry-after" => "7" } : {}), [JSON.generate(body)]]
  end
end

# Fails for two keys.
class Failing < Solotick::Memory
  def begin(job, key, token)
    raise "the store is away" if key.end_with?("/no-begin")

    super
  end

  def end(key, token, answer)
    raise "the store is away" if key.end_with?("/no-end")

    super
  end
end

# Lint finds what is against the rules of Rack, on both sides of the middleware.
guarded = Rack::Lint.new(Solotick.new(Rack::Lint.new(App.new), secret: ARGV[0], store: Failing.new))

# A request can come from the peer that a test pretends to be.
app = lambda do |env|
  env["REMOTE_ADDR"] = env.fetch("HTTP_TEST_PEER", env["REMOTE_ADDR"])
  env["SCRIPT_NAME"] = env.fetch("HTTP_TEST_ROOT", env["SCRIPT_NAME"])
  guarded.call(env)
end

# From Puma 6 on, the log is an option.
server = if defined?(Puma::LogWriter)
           Puma::Server.new(app, nil, max_threads: 32, log_writer: Puma::LogWriter.null)
         else
           Puma::Server.new(app, Puma::Events.null, max_threads: 32)
         end
server.add_tcp_listener("127.0.0.1", 0)
puts "http://127.0.0.1:#{server.connected_ports.first}"
$stdout.flush
server.run.join
