# A middleware for the handlers that Solotick calls, for any Rack app (Rails, Sinatra, Hanami, Roda). Copy this file into your
# app.
#
#     use Solotick, secret: ENV["SECRET"]                    # config.ru, Sinatra
#     config.middleware.use Solotick, secret: ENV["SECRET"]  # Rails, in config/application.rb
#
# For the paths below /jobs/, it admits only the replica beside the app, refuses a run whose fencing token is lower than one it
# has seen for the job, and does the work of a tick once: a repeated Idempotency-Key gets 409 while the work is under way, and
# the stored answer once it has succeeded. After a failure the work is done again. Work that goes on after the answer 202 is
# under way until it has ended: see later.
#
# Memory keeps the keys in this process. If an app has several copies, or several worker processes as Puma has with `workers`,
# its store must be shared by them: write one over your database, with the SQL of docs/handlers.md. Do not use the middleware
# for jobs with concurrencyPolicy Allow: their runs overlap, so a lower token is no sign of an old run. Ruby 2.7 or later. It is
# tested with Rack 2, and written for Rack 3, too.

require "rack/utils"

class Solotick
  WEEK = 7 * 24 * 3600

  # Answers: status, Content-Type, body.
  FOREIGN = [403, "text/plain", "only the replica beside this app may call"].freeze
  STRANGE = [403, "text/plain",
             "the secret is missing or wrong: send it in the job's headers, as Authorization: Bearer SECRET"].freeze
  UNKNOWN = [400, "text/plain", "this is no call of Solotick"].freeze
  OLD = [412, "text/plain", "a newer run of this job has begun"].freeze
  BUSY = [409, "text/plain", "the work of this tick is under way"].freeze
  DONE = [200, "text/plain", "done"].freeze

  # A store in this process. Each method is one atomic step.
  class Memory
    Entry = Struct.new(:token, :since, :busy, :answer)

    def initialize(keep: WEEK)
      @keep = keep # seconds
      @keys = {} # key -> Entry
      @tokens = Hash.new(0) # job -> the greatest token that was seen
      @cleaned = 0
      @lock = Mutex.new
    end

    # Decides on a call: nil = do the work, or else the answer. token is 0 for a run that has none.
    def begin(job, key, token)
      @lock.synchronize do
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        forget(now)
        next OLD if token > 0 && token < @tokens[job]

        @tokens[job] = [token, @tokens[job]].max
        entry = @keys[key]
        if entry.nil? || (entry.busy ? entry.token < token : entry.answer.nil?)
          @keys[key] = Entry.new(token, now, true, nil)
          next nil
        end
        entry.busy ? BUSY : entry.answer
      end
    end

    # Keeps the answer of a key whose work succeeded; nil says that it failed. It does nothing if the key has been taken over
    # by a run with another token.
    def end(key, token, answer)
      @lock.synchronize do
        entry = @keys[key]
        entry.busy, entry.answer = false, answer if entry&.busy && entry.token == token
      end
    end

    private

    def forget(now)
      return if now - @cleaned < 60

      @cleaned = now
      @keys.delete_if { |_, entry| !entry.busy && now - entry.since > @keep }
    end
  end

  def initialize(app, secret:, store: Memory.new, prefix: "/jobs/")
    raise ArgumentError, "the secret is empty, so everybody would know it" if secret.to_s.empty?

    @app, @secret, @store, @prefix = app, secret, store, prefix
  end

  def call(env)
    return @app.call(env) unless guards?(env)

    answer, *call = examine(env)
    answer ||= @store.begin(*call)
    return work(env, *call.drop(1)) unless answer

    status, type, body = answer
    [status, type ? { "content-type" => type } : {}, [body]]
  end

  private

  # Whether this is the path of a job. Routers unescape paths; some squeeze slashes, take \ for one, and resolve dots. If the app
  # is mounted below a root, SCRIPT_NAME has that.
  def guards?(env)
    ["", env["SCRIPT_NAME"].to_s].any? do |root|
      path = Rack::Utils.unescape_path(root + env["PATH_INFO"].to_s).b.tr("\\", "/").squeeze("/")
      parts = path.split("/").each_with_object([]) do |part, kept|
        part == ".." ? kept.pop : (kept << part unless ["", "."].include?(part))
      end
      path.start_with?(@prefix) || "/#{parts.join("/")}".start_with?(@prefix)
    end
  end

  # The answer to what is no call of the replica, or nil; and the job, key and token of a call.
  def examine(env)
    return [FOREIGN] unless env["REMOTE_ADDR"].to_s.match?(/\A(::1|(::ffff:)?127\.\d+\.\d+\.\d+)\z/)
    return [STRANGE] unless Rack::Utils.secure_compare(env["HTTP_AUTHORIZATION"].to_s.delete_prefix("Bearer "), @secret)

    job, key = env.values_at("HTTP_SOLOTICK_JOB", "HTTP_IDEMPOTENCY_KEY")
    token = env.fetch("HTTP_SOLOTICK_FENCING_TOKEN", "0")
    return [UNKNOWN] if job.to_s.empty? || key.to_s.empty? || !token.match?(/\A\d{1,18}\z/)

    [nil, job, key, token.to_i]
  end

  # Runs the app, keeps its answer if it is a success, and sends it.
  def work(env, key, token)
    goes_on = false
    # Says that the work goes on when its handler has answered 202. The key is under way until the handler calls what this
    # returns, with true if the work has succeeded.
    env["solotick.later"] = lambda do
      goes_on = true
      ->(ok) { @store.end(key, token, ok ? DONE : nil) }
    end
    answer = nil
    begin
      status, headers, parts = @app.call(env)
      body = whole(parts)
      _, type = headers.find { |name, _| name.casecmp?("content-type") }
      answer = [status.to_i, type, body] if kept?(status.to_i, env)
    ensure
      @store.end(key, token, answer) unless goes_on
    end
    [status, headers, [body]]
  end

  def whole(parts)
    body = String.new
    parts.each { |part| body << part.b }
    body
  ensure
    parts.close if parts.respond_to?(:close)
  end

  # Whether an answer is that of work that is done. A call that is accepted without later counts as failed.
  def kept?(status, env)
    status.between?(200, 299) && !(status == 202 && env.key?("HTTP_SOLOTICK_CALLBACK"))
  end
end
