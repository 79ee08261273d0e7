// One replica of an app that keeps Quartz: with Solotick's adapter, or with a lock by SET NX in each job.
//
//   java QuartzApp solotick|setnx HOST:PORT FILE NAME
//
// The address is the API of the replica beside the app, or Redis. FILE holds the jobs as JSON. The clock is moved from
// outside.

import static org.quartz.CronScheduleBuilder.cronSchedule;
import static org.quartz.JobBuilder.newJob;
import static org.quartz.TriggerBuilder.newTrigger;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.TimeZone;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.quartz.Job;
import org.quartz.JobExecutionContext;
import org.quartz.JobExecutionException;
import org.quartz.Scheduler;
import org.quartz.impl.StdSchedulerFactory;

public final class QuartzApp implements Job {
  private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private static final Pattern OBJECT = Pattern.compile("\\{[^}]*\\}");
  private static String kind;
  private static String address;
  private static String replica;

  public static void main(String[] args) throws Exception {
    kind = args[0];
    address = args[1];
    replica = args[3];
    Properties settings = new Properties();
    settings.setProperty("org.quartz.threadPool.threadCount", "50");
    Scheduler scheduler = new StdSchedulerFactory(settings).getScheduler();
    if (kind.equals("solotick")) Solotick.listen(scheduler, "http://" + address);
    String text = Files.readString(Path.of(args[2]));
    for (MatchResult job : (Iterable<MatchResult>) OBJECT.matcher(text).results()::iterator) {
      var schedule = cronSchedule("*/" + field(job.group(), "every") + " * * * * ?");
      var detail = newJob(QuartzApp.class).withIdentity(field(job.group(), "name"));
      detail.usingJobData("url", field(job.group(), "url").replace("\\u0026", "&"));
      schedule.inTimeZone(TimeZone.getTimeZone("UTC"));
      scheduler.scheduleJob(detail.build(), newTrigger().withSchedule(schedule).build());
    }
    scheduler.start();
    System.out.println("ready");
  }

  private static String field(String json, String name) {
    var found = Pattern.compile("\"" + name + "\":\"?([^\",}]*)").matcher(json);
    if (!found.find()) throw new IllegalArgumentException(name + " is missing in " + json);
    return found.group(1);
  }

  @Override
  public void execute(JobExecutionContext context) throws JobExecutionException {
    String tick = context.getScheduledFireTime().toInstant().toString();
    try {
      if (kind.equals("solotick")) tick = Solotick.claim(context).get("tick");
      else if (!locked("lock:" + context.getJobDetail().getKey().getName() + ":" + tick)) return;
      HttpRequest request = HttpRequest.newBuilder(URI.create(context.getMergedJobDataMap().getString("url")))
          .header("Solotick-Tick", tick)
          .header("Solotick-Replica", replica)
          .POST(HttpRequest.BodyPublishers.noBody())
          .build();
      CLIENT.send(request, HttpResponse.BodyHandlers.discarding());
    } catch (IOException | InterruptedException err) {
      throw new JobExecutionException(err);
    }
  }

  /** SET NX, with a key of its own for each fire time. */
  private static boolean locked(String key) throws IOException {
    String[] at = address.split(":");
    try (Socket redis = new Socket(at[0], Integer.parseInt(at[1]))) {
      StringBuilder command = new StringBuilder("*6\r\n");
      for (String word : new String[] {"SET", key, replica, "NX", "PX", "30000"}) {
        command.append('$').append(word.length()).append("\r\n").append(word).append("\r\n");
      }
      redis.getOutputStream().write(command.toString().getBytes(StandardCharsets.UTF_8));
      return "+OK".equals(new BufferedReader(new InputStreamReader(redis.getInputStream())).readLine());
    }
  }
}
