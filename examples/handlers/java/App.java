// A small app with one job, for the tests: java App SECRET. It prints its address.

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

public final class App {
  private static final Map<String, Integer> counts = new ConcurrentHashMap<>();

  /** Answers with the code of ?codes= that is next for the job, after ?take= milliseconds. */
  private static final class Jobs extends HttpServlet {
    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException, ServletException {
      int n = counts.merge(request.getHeader("Solotick-Job"), 1, Integer::sum);
      try {
        Thread.sleep(Integer.parseInt(or(request.getParameter("take"), "0")));
      } catch (InterruptedException e) {
        throw new ServletException(e);
      }
      String[] codes = or(request.getParameter("codes"), "200").split(",");
      String code = codes[Math.min(n, codes.length) - 1];
      switch (code) {
        case "throw" -> throw new ServletException("broken");
        case "async" -> request.startAsync();
        default -> {
          if (code.equals("503")) {
            response.setHeader("Retry-After", "7");
          }
          if (code.equals("404")) {
            response.sendError(404);
            return;
          }
          response.setStatus(Integer.parseInt(code));
          response.setContentType("application/json");
          response.getWriter().print("{\"n\":" + n + "}");
        }
      }
    }
  }

  private static final class Count extends HttpServlet {
    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
      response.getWriter().print(counts.getOrDefault(request.getParameter("job"), 0));
    }
  }

  /** Fails for two keys. */
  private record Failing(SolotickFilter.Store store) implements SolotickFilter.Store {
    @Override
    public SolotickFilter.Decision begin(String job, String key, long token) throws Exception {
      if (key.endsWith("/no-begin")) {
        throw new IOException("the store is away");
      }
      return store.begin(job, key, token);
    }

    @Override
    public void end(String key, long token, SolotickFilter.Answer answer) throws Exception {
      if (key.endsWith("/no-end")) {
        throw new IOException("the store is away");
      }
      store.end(key, token, answer);
    }
  }

  private static String or(String text, String other) {
    return text == null ? other : text;
  }

  private static void filter(Context context, String name, Filter filter) {
    var def = new FilterDef();
    def.setFilterName(name);
    def.setFilter(filter);
    def.setAsyncSupported("true"); // as Spring Boot does
    context.addFilterDef(def);
    var map = new FilterMap();
    map.setFilterName(name);
    map.addURLPattern("/jobs/*");
    map.setDispatcher(DispatcherType.REQUEST.name());
    context.addFilterMap(map);
  }

  public static void main(String[] args) throws Exception {
    java.util.logging.LogManager.getLogManager().reset();
    File dir = Files.createTempDirectory("solotick").toFile();
    dir.deleteOnExit();
    var tomcat = new Tomcat();
    tomcat.setBaseDir(dir.getPath());
    var connector = new Connector();
    connector.setPort(0);
    connector.setProperty("address", "127.0.0.1");
    tomcat.setConnector(connector);
    Context context = tomcat.addContext("", dir.getPath());
    // The peer that a test pretends to be.
    filter(context, "peer", (request, response, chain) -> {
      String peer = ((HttpServletRequest) request).getHeader("Test-Peer");
      chain.doFilter(peer == null ? request : new HttpServletRequestWrapper((HttpServletRequest) request) {
        @Override
        public String getRemoteAddr() {
          return peer;
        }
      }, response);
    });
    filter(context, "solotick", new SolotickFilter(args[0], new Failing(new SolotickFilter.Memory())));
    var jobs = Tomcat.addServlet(context, "jobs", new Jobs());
    jobs.setAsyncSupported(true);
    context.addServletMappingDecoded("/jobs/*", "jobs");
    Tomcat.addServlet(context, "count", new Count());
    context.addServletMappingDecoded("/count", "count");
    tomcat.start();
    System.out.println("http://127.0.0.1:" + connector.getLocalPort());
    tomcat.getServer().await();
  }
}
