// A filter for the handlers that Solotick calls, for any servlet container of Jakarta EE 9 or later, and so for Spring Boot 3.
// Copy this file into your app.
//
// It admits only the replica beside the app, refuses a run whose fencing token is lower than one it has seen for the job,
// and does the work of a tick once: a repeated Idempotency-Key gets 409 while the work is under way, and the stored answer
// once it has succeeded. After a failure the work is done again. The filter keeps no key of a call with http.async that is
// answered by 202: a repeated call does the work again.
//
// Memory keeps the keys in this process. If an app has several copies, its store must be shared by them: write a Store over
// your database, with the SQL of docs/handlers.md. Do not use the filter for jobs with concurrencyPolicy Allow: their runs
// overlap, so a lower token is no sign of an old run.
//
// The project's tests run it in Tomcat 10, without Spring. In Spring Boot a bean maps it to the paths of jobs:
//
//   @Bean
//   FilterRegistrationBean<SolotickFilter> solotick(@Value("${solotick.secret}") String secret) {
//     var bean = new FilterRegistrationBean<>(new SolotickFilter(secret, new SolotickFilter.Memory()));
//     bean.addUrlPatterns("/jobs/*");
//     return bean;
//   }

import jakarta.servlet.AsyncContext;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;

public final class SolotickFilter implements Filter {

  /** The answer of a handler. */
  public record Answer(int status, String type, byte[] body) {}

  /** What is to be done with a call. */
  public enum Verdict {
    /** The key is new, or its work failed, or the call that did it has a lower token. */
    WORK,
    /** The work of the key is under way. */
    BUSY,
    /** The work of the key is done. */
    DONE,
    /** A run of the job with a greater token has been seen. */
    OLD
  }

  /** A verdict, with the answer of a key that is done. */
  public record Decision(Verdict verdict, Answer answer) {}

  /** Keeps keys and tokens. Each method is one atomic step. */
  public interface Store {
    /** Decides on a call. token is 0 for a run that has none. */
    Decision begin(String job, String key, long token) throws Exception;

    /**
     * Keeps the answer of a key whose work succeeded; null says that it failed. It does nothing if the key has been taken
     * over by a run with another token.
     */
    void end(String key, long token, Answer answer) throws Exception;
  }

  private static final Pattern LOOPBACK =
      Pattern.compile("(::ffff:)?127\\.\\d+\\.\\d+\\.\\d+|::1|0:0:0:0:0:0:0:1", Pattern.CASE_INSENSITIVE);

  private final byte[] secret;
  private final Store store;

  /** The table sends the secret as headers: {Authorization: "Bearer ${SECRET}"}. */
  public SolotickFilter(String secret, Store store) {
    if (secret == null || secret.isEmpty()) {
      throw new IllegalArgumentException("the secret is empty, so everybody would know it");
    }
    this.secret = secret.getBytes(StandardCharsets.UTF_8);
    this.store = store;
  }

  @Override
  public void doFilter(ServletRequest req, ServletResponse res, FilterChain chain) throws IOException, ServletException {
    var request = (HttpServletRequest) req;
    var response = (HttpServletResponse) res;
    if (!beside(request)) {
      refuse(response, 403, "only the replica beside this app may call");
      return;
    }
    if (!hasSecret(request)) {
      refuse(response, 403, "the secret is missing or wrong: send it in the job's headers, as Authorization: Bearer SECRET");
      return;
    }
    String job = request.getHeader("Solotick-Job");
    String key = request.getHeader("Idempotency-Key");
    long token = token(request);
    if (job == null || job.isEmpty() || key == null || key.isEmpty() || token < 0) {
      refuse(response, 400, "this is no call of Solotick");
      return;
    }
    Decision decision;
    try {
      decision = store.begin(job, key, token);
    } catch (Exception e) {
      throw new ServletException("the store of keys does not answer", e);
    }
    switch (decision.verdict()) {
      case OLD -> refuse(response, 412, "a newer run of this job has begun");
      case BUSY -> refuse(response, 409, "the work of this tick is under way");
      case DONE -> send(response, decision.answer());
      case WORK -> work(request, response, chain, key, token);
    }
  }

  private static boolean beside(HttpServletRequest request) {
    String peer = request.getRemoteAddr();
    return peer != null && LOOPBACK.matcher(peer).matches();
  }

  private boolean hasSecret(HttpServletRequest request) {
    String given = request.getHeader("Authorization");
    return given != null && MessageDigest.isEqual(given.replaceFirst("^Bearer ", "").getBytes(StandardCharsets.UTF_8), secret);
  }

  /** The fencing token, 0 if there is none, and -1 if it is no number. */
  private static long token(HttpServletRequest request) {
    String text = request.getHeader("Solotick-Fencing-Token");
    try {
      return text == null ? 0 : Long.parseLong(text);
    } catch (NumberFormatException e) {
      return -1;
    }
  }

  /** Runs the handler, keeps its answer if it is a success, and sends it. */
  private void work(HttpServletRequest request, HttpServletResponse response, FilterChain chain, String key, long token)
      throws IOException, ServletException {
    var held = new Held(response);
    Answer kept = null;
    try {
      chain.doFilter(new Synchronous(request), held);
      // By 202 the handler of a job with http.async accepts the work, which is no end of it.
      boolean accepted = held.getStatus() == 202 && request.getHeader("Solotick-Callback") != null;
      if (held.getStatus() >= 200 && held.getStatus() < 300 && !accepted) {
        kept = held.answer();
      }
    } finally {
      try {
        store.end(key, token, kept);
      } catch (Exception e) {
        throw new ServletException("the store of keys does not answer", e);
      }
    }
    if (!held.left) {
      send(response, held.answer());
    }
  }

  private static void refuse(HttpServletResponse response, int status, String why) throws IOException {
    send(response, new Answer(status, "text/plain", why.getBytes(StandardCharsets.UTF_8)));
  }

  private static void send(HttpServletResponse response, Answer answer) throws IOException {
    response.setStatus(answer.status());
    if (answer.type() != null) {
      response.setContentType(answer.type());
    }
    response.setContentLength(answer.body().length);
    response.getOutputStream().write(answer.body());
  }

  /** Keeps handlers from answering later, when the filter cannot see it: no DeferredResult, no Mono. */
  private static final class Synchronous extends HttpServletRequestWrapper {
    Synchronous(HttpServletRequest request) {
      super(request);
    }

    @Override
    public boolean isAsyncSupported() {
      return false;
    }

    @Override
    public AsyncContext startAsync() {
      throw new IllegalStateException("a job answers when its work is done");
    }

    @Override
    public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
      return startAsync();
    }
  }

  /** Holds an answer back until it is kept. Errors and redirects are left to the container, since none is kept. */
  private static final class Held extends HttpServletResponseWrapper {
    private final ByteArrayOutputStream body = new ByteArrayOutputStream();
    private PrintWriter writer;
    private ServletOutputStream stream;
    boolean left;

    Held(HttpServletResponse response) {
      super(response);
    }

    Answer answer() {
      flushBuffer();
      return new Answer(getStatus(), getContentType(), body.toByteArray());
    }

    @Override
    public void sendError(int status) throws IOException {
      left = true;
      super.sendError(status);
    }

    @Override
    public void sendError(int status, String message) throws IOException {
      left = true;
      super.sendError(status, message);
    }

    @Override
    public void sendRedirect(String location) throws IOException {
      left = true;
      super.sendRedirect(location);
    }

    @Override
    public PrintWriter getWriter() throws IOException {
      if (writer == null) {
        setCharacterEncoding(getCharacterEncoding()); // the container's own writer names it, too
        writer = new PrintWriter(new OutputStreamWriter(body, getCharacterEncoding()));
      }
      return writer;
    }

    @Override
    public ServletOutputStream getOutputStream() {
      if (stream == null) {
        stream =
            new ServletOutputStream() {
              @Override
              public void write(int b) {
                body.write(b);
              }

              @Override
              public void write(byte[] bytes, int from, int length) {
                body.write(bytes, from, length);
              }

              @Override
              public boolean isReady() {
                return true;
              }

              @Override
              public void setWriteListener(WriteListener listener) {
                throw new IllegalStateException("a job answers when its work is done");
              }
            };
      }
      return stream;
    }

    @Override
    public void flushBuffer() {
      if (writer != null) {
        writer.flush();
      }
    }

    @Override
    public void resetBuffer() {
      flushBuffer();
      body.reset();
    }

    @Override
    public void reset() {
      resetBuffer();
      super.reset();
    }

    @Override
    public void setContentLength(int length) {}

    @Override
    public void setContentLengthLong(long length) {}
  }

  /** A store in this process. */
  public static final class Memory implements Store {
    private static final class Entry {
      final long token;
      final long since = System.nanoTime();
      boolean busy = true;
      Answer answer; // null = the work failed, unless busy

      Entry(long token) {
        this.token = token;
      }
    }

    private final long keep; // nanoseconds
    private final Map<String, Entry> keys = new HashMap<>();
    private final Map<String, Long> tokens = new HashMap<>(); // the greatest that was seen, by job
    private long cleaned = System.nanoTime();

    /** Keeps keys for a week. */
    public Memory() {
      this(Duration.ofDays(7));
    }

    public Memory(Duration keep) {
      this.keep = keep.toNanos();
    }

    @Override
    public synchronized Decision begin(String job, String key, long token) {
      forget();
      long greatest = tokens.getOrDefault(job, 0L);
      if (token > 0 && token < greatest) {
        return new Decision(Verdict.OLD, null);
      }
      tokens.put(job, Math.max(token, greatest));
      Entry e = keys.get(key);
      if (e == null || e.busy && e.token < token || !e.busy && e.answer == null) {
        keys.put(key, new Entry(token));
        return new Decision(Verdict.WORK, null);
      }
      return e.busy ? new Decision(Verdict.BUSY, null) : new Decision(Verdict.DONE, e.answer);
    }

    @Override
    public synchronized void end(String key, long token, Answer answer) {
      Entry e = keys.get(key);
      if (e != null && e.busy && e.token == token) {
        e.busy = false;
        e.answer = answer;
      }
    }

    /** Drops old keys, once a minute. */
    private void forget() {
      long now = System.nanoTime();
      if (now - cleaned < Duration.ofMinutes(1).toNanos()) {
        return;
      }
      cleaned = now;
      keys.values().removeIf(e -> !e.busy && now - e.since > keep);
    }
  }
}
