// For Quartz 2.3 or later, and Java 11 or later: each fire time of a job runs in one copy of the app alone. Copy this file into
// your app.
//
//   Solotick.listen(scheduler, "http://127.0.0.1:9748");
//
// The name of a job in Quartz is its name in Solotick's table. Before a job runs, the listener asks the replica beside the app
// for the fire time: it claims the tick. If the answer is not 200, it vetoes the run. After the claim come heartbeats. The job
// begins when the first one is answered with 200, so a claim whose answer was lost is never begun. Each 200 lets the job go on
// for the time of a heartbeat, counted from when it was sent. When that time is over, or a heartbeat is answered 404 or 410, the
// job must end at once: its thread is interrupted, interrupt() of an InterruptableJob is called, and stopped(context) is true.
//
// All jobs of the scheduler ask. A claim that waits for its answer takes a thread of the scheduler.

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.quartz.InterruptableJob;
import org.quartz.JobExecutionContext;
import org.quartz.JobExecutionException;
import org.quartz.JobListener;
import org.quartz.Scheduler;
import org.quartz.SchedulerException;
import org.quartz.Trigger;
import org.quartz.UnableToInterruptJobException;
import org.quartz.listeners.SchedulerListenerSupport;
import org.quartz.listeners.TriggerListenerSupport;

/** Listens to triggers, which it may veto, and to the ends of jobs. */
public final class Solotick extends TriggerListenerSupport implements JobListener {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final Pattern FIELD = Pattern.compile("\"(\\w+)\"\\s*:\\s*\"?([^\",}]*)");
  private static final HttpClient DIRECT =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).proxy(HttpClient.Builder.NO_PROXY).build();

  private final String api;
  private final ThreadLocal<Run> current = new ThreadLocal<>(); // Quartz asks, runs and tells the end in one thread

  private Solotick(String api) {
    this.api = api;
  }

  /** Makes all jobs of a scheduler ask the replica at that address. */
  public static void listen(Scheduler scheduler, String api) throws SchedulerException {
    Solotick listener = new Solotick(api);
    scheduler.getListenerManager().addTriggerListener(listener);
    scheduler.getListenerManager().addJobListener(listener);
    // If another listener throws, Quartz calls no listener of the job any more, and this one in the job's thread.
    scheduler.getListenerManager().addSchedulerListener(new SchedulerListenerSupport() {
      @Override
      public void schedulerError(String what, SchedulerException cause) {
        listener.end("failed", detail(cause));
      }
    });
  }

  /** The answer to the claim of a run: tick, run, fencingToken and, if the job has succeeded before, since. */
  public static Map<String, String> claim(JobExecutionContext context) {
    return ((Run) context.get(Run.class)).claim;
  }

  /** Reports whether the job must stop at once: another copy of the app may run it. */
  public static boolean stopped(JobExecutionContext context) {
    return ((Run) context.get(Run.class)).stopped() != null;
  }

  @Override
  public String getName() {
    return "solotick";
  }

  @Override
  public boolean vetoJobExecution(Trigger trigger, JobExecutionContext context) {
    end("failed", "Quartz did not tell how the job ended"); // of an earlier job of this thread, that ended by an Error
    String job = URLEncoder.encode(context.getJobDetail().getKey().getName(), StandardCharsets.UTF_8);
    String path = "/v1/jobs/" + job + "/ticks/" + context.getScheduledFireTime().toInstant();
    Answer answer = post(path, 70 * SECOND, "", "{}"); // it may be held back for 60 s
    if (answer.broken) answer = post(path, 70 * SECOND, "", "{}"); // a connection that was kept may have been closed
    if (answer.status != 200) {
      String says = path + " does not run here: " + answer;
      if (answer.status == 409 && answer.text.contains("\"reason\"")) getLog().info(says);
      else getLog().warn(says);
      return true;
    }
    Run run = new Run(context, FIELD.matcher(answer.text).results()
        .collect(Collectors.toMap((MatchResult r) -> r.group(1), (MatchResult r) -> r.group(2))));
    if (!run.mayBegin()) {
      run.finish("interrupted", run.reason);
      return true;
    }
    context.put(Run.class, run);
    current.set(run);
    return false;
  }

  @Override
  public void jobToBeExecuted(JobExecutionContext context) {}

  @Override
  public void jobExecutionVetoed(JobExecutionContext context) {
    end("failed", "another listener vetoed it");
  }

  @Override
  public void jobWasExecuted(JobExecutionContext context, JobExecutionException failure) {
    if (failure == null) end("succeeded", "");
    else end("failed", detail(failure));
  }

  private static String detail(Throwable failure) {
    for (int i = 0; i < 20 && failure.getCause() != null; i++) failure = failure.getCause(); // it may be a circle
    return failure.getMessage() == null ? failure.toString() : failure.getMessage();
  }

  /** Ends the run of this thread, if there is one. */
  private void end(String outcome, String detail) {
    Run run = current.get();
    if (run == null) return;
    current.remove();
    String reason = run.stopped();
    boolean told = outcome.equals("failed") && reason != null;
    run.finish(told ? "interrupted" : outcome, told ? reason : detail);
  }

  private static final class Answer {
    final int status; // 0 if none came in time
    final String text;
    final boolean broken; // the connection was

    Answer(int status, String text, boolean broken) {
      this.status = status;
      this.text = text;
      this.broken = broken;
    }

    @Override
    public String toString() {
      return status + " " + text.trim();
    }
  }

  private Answer post(String path, long nanos, String token, String body) {
    HttpRequest request = HttpRequest.newBuilder(URI.create(api + path))
        .header("Content-Type", "application/json")
        .header("Authorization", "Bearer " + token)
        .POST(HttpRequest.BodyPublishers.ofString(body))
        .build();
    // A timeout of the request would end with the headers of its answer.
    CompletableFuture<HttpResponse<String>> sent = DIRECT.sendAsync(request, HttpResponse.BodyHandlers.ofString());
    try {
      HttpResponse<String> answer = sent.get(nanos, TimeUnit.NANOSECONDS);
      return new Answer(answer.statusCode(), answer.body(), false);
    } catch (ExecutionException err) {
      return new Answer(0, err.getCause().toString(), true);
    } catch (TimeoutException err) {
      sent.cancel(true);
      return new Answer(0, "no answer came in time", false);
    } catch (InterruptedException err) {
      sent.cancel(true);
      Thread.currentThread().interrupt();
      return new Answer(0, err.toString(), false);
    }
  }

  /** A run of this app. It is made and finished by the thread of its job. */
  private final class Run {
    final Map<String, String> claim;
    private final JobExecutionContext context;
    private final Thread worker = Thread.currentThread();
    private final long heartbeat; // in ns, as all times here
    private final CountDownLatch heard = new CountDownLatch(1);
    private final CountDownLatch over = new CountDownLatch(1);
    private volatile boolean granted;
    private String reason; // for which the job must stop; null = it may go on

    Run(JobExecutionContext context, Map<String, String> claim) {
      this.context = context;
      this.claim = claim;
      heartbeat = TimeUnit.MILLISECONDS.toNanos(Long.parseLong(claim.get("heartbeatMs")));
      Thread beats = new Thread(this::beat, "solotick-" + claim.get("run"));
      beats.setDaemon(true);
      beats.start();
    }

    boolean mayBegin() {
      try {
        heard.await();
      } catch (InterruptedException err) {
        stop("the thread of the job was interrupted");
        worker.interrupt();
      }
      return stopped() == null;
    }

    synchronized String stopped() {
      return reason;
    }

    private void beat() {
      String why = "the heartbeats ended"; // whatever ends them ends the job, too
      try {
        why = beatOn();
      } catch (InterruptedException err) {
        why = err.toString();
      } finally {
        stop(why);
        heard.countDown();
      }
    }

    private String beatOn() throws InterruptedException {
      long third = heartbeat / 3;
      long until = System.nanoTime() + heartbeat;
      for (long wait = 0; !over.await(Math.min(wait, until - System.nanoTime()), TimeUnit.NANOSECONDS); ) {
        long sent = System.nanoTime();
        if (sent - until >= 0) return "no heartbeat was answered in time";
        Answer answer = post("heartbeat", Math.min(third, until - sent), "{}");
        wait = Math.min(third, SECOND); // no answer, or the replica is not sure of its lock: ask again, within the time
        if (answer.status == 200) {
          until = sent + heartbeat / 10 * 9; // a tenth of the time is for the job to stop
          granted = true;
          heard.countDown();
          wait = sent + third - System.nanoTime();
        } else if (answer.status > 0 && answer.status < 500) {
          return "a heartbeat was answered " + answer;
        }
      }
      return null;
    }

    private void stop(String why) {
      synchronized (this) {
        if (over.getCount() == 0 || reason != null) return;
        reason = why;
        if (!granted) return;
        worker.interrupt();
      }
      if (context.getJobInstance() instanceof InterruptableJob) {
        try {
          ((InterruptableJob) context.getJobInstance()).interrupt();
        } catch (UnableToInterruptJobException err) {
          getLog().warn("a job that must stop cannot be interrupted", err);
        }
      }
    }

    /** Reports the end of the job, again for a while if no answer comes. */
    void finish(String outcome, String detail) {
      boolean interrupted; // by somebody else, who is to hear of it afterwards
      synchronized (this) {
        over.countDown();
        interrupted = Thread.interrupted() && !(reason != null && granted);
      }
      String cut = detail.length() > 300 ? detail.substring(0, 300) : detail;
      String safe = cut.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ");
      String body = "{\"outcome\": \"" + outcome + "\", \"detail\": \"" + safe + "\"}";
      try {
        for (long end = System.nanoTime() + Math.max(heartbeat, 5 * SECOND); System.nanoTime() - end < 0; Thread.sleep(500)) {
          Answer answer = post("finish", 2 * SECOND, body);
          if (answer.status > 0 && answer.status < 500) break;
        }
      } catch (InterruptedException err) {
        interrupted = true;
      }
      if (interrupted) Thread.currentThread().interrupt();
    }

    private Answer post(String what, long nanos, String body) {
      return Solotick.this.post("/v1/runs/" + claim.get("run") + "/" + what, nanos, claim.get("token"), body);
    }
  }
}
