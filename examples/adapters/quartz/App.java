// A small app for the tests of Solotick.java: App API SECONDS TAKE_MS SKEW_MS JOB...
//
// Its jobs take so long. Then those named fails... fail, those named restores... leave their thread interrupted, and those named
// endless... end when they are told to. Another listener throws before those named breaks... The clock is moved from outside.

import static org.quartz.CronScheduleBuilder.cronSchedule;
import static org.quartz.JobBuilder.newJob;
import static org.quartz.TriggerBuilder.newTrigger;

import java.util.Map;
import java.util.Properties;
import java.util.TimeZone;
import org.quartz.Job;
import org.quartz.JobExecutionContext;
import org.quartz.JobExecutionException;
import org.quartz.Scheduler;
import org.quartz.Trigger;
import org.quartz.impl.StdSchedulerFactory;
import org.quartz.listeners.TriggerListenerSupport;

public final class App implements Job {
  private static long take;

  public static void main(String[] args) throws Exception {
    take = Long.parseLong(args[2]);
    Properties settings = new Properties();
    settings.setProperty("org.quartz.threadPool.threadCount", "50");
    Scheduler scheduler = new StdSchedulerFactory(settings).getScheduler();
    Solotick.listen(scheduler, args[0]);
    scheduler.getListenerManager().addTriggerListener(new TriggerListenerSupport() {
      @Override
      public String getName() {
        return "other";
      }

      @Override
      public void triggerFired(Trigger trigger, JobExecutionContext context) {
        if (trigger.getJobKey().getName().startsWith("breaks")) throw new IllegalStateException("a listener broke");
      }
    });
    for (int i = 4; i < args.length; i++) {
      var schedule = cronSchedule(args[1] + " * * * * ?").inTimeZone(TimeZone.getTimeZone("UTC"));
      scheduler.scheduleJob(newJob(App.class).withIdentity(args[i]).build(), newTrigger().withSchedule(schedule).build());
    }
    scheduler.start();
    System.out.println("ready");
  }

  private static void say(String what, String job, JobExecutionContext context) {
    Map<String, String> claim = Solotick.claim(context);
    System.out.println(String.join(" ", what, job, claim.get("tick"), claim.get("run"), claim.get("fencingToken")));
  }

  @Override
  public void execute(JobExecutionContext context) throws JobExecutionException {
    String job = context.getJobDetail().getKey().getName();
    say("begun", job, context);
    try {
      Thread.sleep(job.startsWith("endless") ? 600_000 : take);
    } catch (InterruptedException err) {
      if (Solotick.stopped(context)) say("stopped", job, context);
      throw new JobExecutionException(err);
    }
    if (job.startsWith("fails")) {
      IllegalStateException failure = new IllegalStateException("disk full" + " of zeros".repeat(20_000));
      failure.initCause(new IllegalStateException(failure.getMessage(), failure)); // a circle
      throw failure;
    }
    if (job.startsWith("restores")) Thread.currentThread().interrupt();
    say("done", job, context);
  }
}
