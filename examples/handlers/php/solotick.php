<?php
// A middleware for the handlers that Solotick calls, for plain PHP, PSR-15 (Slim, Mezzio) and Laravel. Copy this file into your
// app.
//
//     $solotick = new Solotick(getenv('SECRET'), new SolotickStore(new PDO('sqlite:/var/lib/app/keys.sqlite')));
//     $solotick->guard();                                             // plain PHP: the rest of the script is the work
//     $app->post('/jobs/x', X::class)->add($solotick);                // Slim: its ResponseFactory is a third argument of new
//     Route::post('/jobs/x', X::class)->middleware(Solotick::class);  // Laravel: bind the new Solotick as a singleton
//
// It admits only the replica beside the app, refuses a run whose fencing token is lower than one it has seen for the job, and
// does the work of a tick once: a repeated Idempotency-Key gets 409 while the work is under way, and the stored answer once it
// has succeeded. After a failure the work is done again.
//
// PHP forgets its memory after each request, so SolotickStore keeps the keys in PostgreSQL or SQLite, with the SQL of
// docs/handlers.md. Give it a connection of its own, as the work may leave a transaction open. Do not use the middleware for
// jobs with concurrencyPolicy Allow: their runs overlap, so a lower token is no sign of an old run. The work must not call
// flush(), which sends 200 before its end. Apache passes the secret on to PHP-FPM only with CGIPassAuth On. PHP 8.0 or later.

final class Solotick
{
    // Answers: status, Content-Type, body.
    private const FOREIGN = [403, 'text/plain', 'only the replica beside this app may call'];
    private const STRANGE = [403, 'text/plain',
        "the secret is missing or wrong: send it in the job's headers, as Authorization: Bearer SECRET"];
    private const UNKNOWN = [400, 'text/plain', 'this is no call of Solotick'];
    public const OLD = [412, 'text/plain', 'a newer run of this job has begun'];
    public const BUSY = [409, 'text/plain', 'the work of this tick is under way'];

    private const FATAL = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;

    private array $open = []; // what ends the keys whose work attempt() does

    /** For PSR-15, $responses is a PSR-17 factory of responses. */
    public function __construct(
        #[\SensitiveParameter] private string $secret,
        private SolotickStore $store,
        private $responses = null,
    ) {
        if ($secret === '') {
            throw new ValueError('the secret is empty, so everybody would know it');
        }
        register_shutdown_function(function () { // no other code runs after exit and a fatal error
            foreach ($this->open as $end) {
                headers_sent() || http_response_code(500);
                $end(500);
            }
        });
    }

    /** Plain PHP: it returns if the rest of the script has to do the work. Otherwise it answers and exits. */
    public function guard(): void
    {
        ini_set('display_errors', '0'); // when PHP shows an error, it answers 200
        [$answer, $end] = $this->begin($_SERVER['REMOTE_ADDR'] ?? '', getallheaders());
        if ($answer) {
            [$status, $type, $body] = $answer;
            http_response_code($status);
            $type === '' || header("Content-Type: $type");
            exit($body);
        }
        ignore_user_abort(true); // the caller may give up while the work goes on
        $body = '';
        $level = ob_get_level();
        ob_start(function (string $part, int $phase) use (&$body) { // holds the answer back, also if the work flushes it
            $body .= $phase & PHP_OUTPUT_HANDLER_CLEAN ? '' : $part;
            return '';
        });
        register_shutdown_function(function () use (&$body, $level, $end) { // also after exit and a fatal error
            while (ob_get_level() > $level) {
                ob_end_flush();
            }
            if ((error_get_last()['type'] ?? 0) & self::FATAL && http_response_code() < 400) {
                http_response_code(500); // PHP does so only if the work has set no status
            }
            try {
                $types = preg_grep('/^content-type:/i', headers_list());
                $end(http_response_code(), trim(substr(end($types) ?: '', strlen('content-type:'))), $body);
            } catch (\Throwable $e) {
                error_log((string) $e);
                http_response_code(500);
                $body = 'the store of keys does not answer';
            }
            echo $body;
        });
    }

    /** PSR-15, without its interface: wrap it as `fn ($request, $handler) => $solotick($request, $handler)` if need be. */
    public function __invoke($request, $handler)
    {
        $headers = array_map(fn ($values) => implode(', ', $values), $request->getHeaders());
        [$answer, $end] = $this->begin($request->getServerParams()['REMOTE_ADDR'] ?? '', $headers);
        if ($answer) {
            return $this->response(...$answer);
        }
        return $this->attempt($end, function () use ($request, $handler) {
            $response = $handler->handle($request);
            $answer = [$response->getStatusCode(), $response->getHeaderLine('Content-Type'), (string) $response->getBody()];
            return [$response->withBody($this->response(...$answer)->getBody()), $answer]; // some bodies are read only once
        });
    }

    /** Laravel. */
    public function handle($request, callable $next)
    {
        $headers = array_map(fn ($values) => implode(', ', $values), $request->headers->all());
        [$answer, $end] = $this->begin($request->server->get('REMOTE_ADDR', ''), $headers);
        if ($answer) {
            [$status, $type, $body] = $answer;
            return new \Symfony\Component\HttpFoundation\Response($body, $status, $type === '' ? [] : ['Content-Type' => $type]);
        }
        return $this->attempt($end, function () use ($request, $next) {
            $response = $next($request);
            $body = $response->getContent();
            if ($body === false) {
                throw new LogicException('the answer is a stream, which works on after it was kept');
            }
            return [$response, [$response->getStatusCode(), $response->headers->get('Content-Type', ''), $body]];
        });
    }

    /** The answer to a call whose work is not to be done, or else what keeps the answer of its work. */
    private function begin(string $peer, array $headers): array
    {
        $headers = array_change_key_case($headers);
        [$given, $job, $key, $replica] = array_map(fn ($name) => $headers[$name] ?? '',
            ['authorization', 'solotick-job', 'idempotency-key', 'solotick-replica']);
        $token = $headers['solotick-fencing-token'] ?? '0';
        $answer = match (true) {
            // nginx names the peer on a unix socket so
            !preg_match('/^(unix:|::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/D', $peer) => self::FOREIGN,
            !hash_equals($this->secret, preg_replace('/^Bearer /', '', $given)) => self::STRANGE,
            $job === '' || $key === '' || !preg_match('/^\d{1,18}$/D', $token) => self::UNKNOWN,
            default => $this->store->begin($job, $key, (int) $token, $replica),
        };
        $async = isset($headers['solotick-callback']); // a 202 then tells nothing of the work
        return [$answer, function (int $status, ?string $type = '', string $body = '') use ($key, $token, $async) {
            $kept = $status >= 200 && $status < 300 && !($status === 202 && $async);
            $this->store->end($key, (int) $token, $kept ? [$status, (string) $type, $body] : null);
        }];
    }

    /** Does the work, which returns the response and the answer in it. */
    private function attempt(callable $end, callable $work)
    {
        $this->open[$id = spl_object_id($end)] = $end;
        $answer = [500];
        try {
            [$response, $answer] = $work();
        } finally {
            unset($this->open[$id]);
            $end(...$answer);
        }
        return $response;
    }

    private function response(int $status, string $type, string $body)
    {
        $response = $this->responses->createResponse($status);
        $response->getBody()->write($body);
        return $type === '' ? $response : $response->withHeader('Content-Type', $type);
    }
}

/** A store in PostgreSQL or SQLite. */
class SolotickStore
{
    /** Create them once. */
    public const TABLES = <<<'SQL'
        CREATE TABLE solotick_tokens (job TEXT PRIMARY KEY, token BIGINT NOT NULL);
        CREATE TABLE solotick_calls (
          key TEXT PRIMARY KEY, state TEXT NOT NULL, token BIGINT NOT NULL, replica TEXT NOT NULL, answer TEXT,
          created TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
        SQL;

    /** Keys are kept for so many seconds, mostly a week. */
    public function __construct(private PDO $db, private int $keep = 7 * 24 * 3600)
    {
    }

    /** Decides on a call: null = do the work, or else the answer. $token is 0 for a run that has none. */
    public function begin(string $job, string $key, int $token, string $replica): ?array
    {
        if (random_int(1, 1000) === 1) {
            $this->forget();
        }
        if ($token > 0 && !$this->rows('
            INSERT INTO solotick_tokens (job, token) VALUES (:job, :token)
            ON CONFLICT (job) DO UPDATE SET token = excluded.token
            WHERE solotick_tokens.token <= excluded.token
            RETURNING token', ['job' => $job, 'token' => $token])) {
            return Solotick::OLD;
        }
        if ($this->rows("
            INSERT INTO solotick_calls (key, state, token, replica) VALUES (:key, 'running', :token, :replica)
            ON CONFLICT (key) DO UPDATE SET state = 'running', token = excluded.token, replica = excluded.replica
            WHERE solotick_calls.state = 'failed'
               OR (solotick_calls.state = 'running' AND solotick_calls.token < excluded.token)
            RETURNING key", ['key' => $key, 'token' => $token, 'replica' => $replica])) {
            return null;
        }
        $row = $this->rows('SELECT state, answer FROM solotick_calls WHERE key = :key', ['key' => $key])[0] ?? [];
        if (($row['state'] ?? '') !== 'done') {
            return Solotick::BUSY;
        }
        [$status, $type, $body] = json_decode($row['answer']);
        return [$status, $type, base64_decode($body)];
    }

    /** Keeps the answer of a key whose work succeeded; null says that it failed. It does nothing if the key has been taken over
     * by a run with another token. */
    public function end(string $key, int $token, ?array $answer): void
    {
        $this->rows("
            UPDATE solotick_calls SET state = :state, answer = :answer
            WHERE key = :key AND token = :token AND state = 'running'", ['key' => $key, 'token' => $token,
            'state' => $answer ? 'done' : 'failed',
            'answer' => $answer ? json_encode([$answer[0], $answer[1], base64_encode($answer[2])]) : null]);
    }

    /** Frees the keys of calls that died. Run it before the app beside a replica starts. */
    public function free(string $replica): void
    {
        $this->rows("UPDATE solotick_calls SET state = 'failed' WHERE replica = :replica AND state = 'running'",
            ['replica' => $replica]);
    }

    /** Forgets old keys. begin() calls it once in a thousand calls. */
    public function forget(): void
    {
        $this->rows("DELETE FROM solotick_calls WHERE state <> 'running' AND created < :before",
            ['before' => gmdate('Y-m-d H:i:s', time() - $this->keep)]);
    }

    private function rows(string $sql, array $values): array
    {
        $statement = $this->db->prepare($sql);
        foreach ($values as $name => $value) {
            $statement->bindValue($name, $value, is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR);
        }
        $statement->execute();
        return $statement->fetchAll(PDO::FETCH_ASSOC);
    }
}
