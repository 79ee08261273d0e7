<?php
// A small app with one job, for the tests: php app.php plain|psr15|laravel SECRET. It says its address. PHP's own server runs it,
// with several processes that share a database.

require 'solotick.php';

/** Fails for two keys. */
final class Failing extends SolotickStore
{
    public function begin(string $job, string $key, int $token, string $replica): ?array
    {
        if (str_ends_with($key, '/no-begin')) {
            throw new RuntimeException('the store is away');
        }
        return parent::begin($job, $key, $token, $replica);
    }

    public function end(string $key, int $token, ?array $answer): void
    {
        if (str_ends_with($key, '/no-end')) {
            throw new RuntimeException('the store is away');
        }
        parent::end($key, $token, $answer);
    }
}

/** Counts a call of the job, and returns the code of ?codes= that is next, after ?take= milliseconds. */
function next_code(): array
{
    $count = db()->prepare('INSERT INTO counts (job, n) VALUES (?, 1) ON CONFLICT (job) DO UPDATE SET n = n + 1 RETURNING n');
    $count->execute([$_SERVER['HTTP_SOLOTICK_JOB']]);
    $n = $count->fetchAll()[0][0];
    usleep(1000 * (int) ($_GET['take'] ?? 0));
    $codes = explode(',', $_GET['codes'] ?? '200');
    $code = $codes[min($n, count($codes)) - 1];
    if ($code === 'throw') {
        throw new RuntimeException('broken');
    }
    if ($code === 'fatal') {
        ini_set('memory_limit', '8M');
        str_repeat('x', 1 << 30);
    }
    return [$code, (string) json_encode(['n' => $n])];
}

function db(): PDO
{
    return new PDO('sqlite:' . getenv('DATABASE'));
}

function plain(Solotick $solotick): void
{
    $solotick->guard();
    [$code, $body] = next_code();
    if ($code === 'torn') {
        http_response_code(201);
        echo 'the beginning';
        ob_flush();
        throw new RuntimeException('broken');
    }
    echo 'this is not sent';
    ob_clean();
    header('Content-Type: application/json');
    if ($code === 'exit') {
        exit($body);
    }
    http_response_code((int) $code);
    $code === '503' && header('Retry-After: 7');
    echo $body;
}

function psr15(Solotick $solotick): void
{
    $request = new Nyholm\Psr7\ServerRequest('POST', $_SERVER['REQUEST_URI'], getallheaders(), null, '1.1', $_SERVER);
    $response = $solotick($request, new class () {
        public function handle($request)
        {
            [$code, $body] = next_code();
            if ($code === 'exit') {
                exit('the beginning');
            }
            $pipe = popen('printf %s ' . escapeshellarg($code === 'torn' ? 'the beginning' : $body), 'r'); // it is read only once
            $body = Nyholm\Psr7\Stream::create($pipe);
            if ($code === 'torn') {
                $body->detach();
            }
            return new Nyholm\Psr7\Response((int) $code ?: 200,
                ['Content-Type' => 'application/json'] + ($code === '503' ? ['Retry-After' => '7'] : []), $body);
        }
    });
    http_response_code($response->getStatusCode());
    foreach ($response->getHeaders() as $name => $values) {
        header("$name: " . implode(', ', $values));
    }
    echo $response->getBody();
}

function laravel(Solotick $solotick): void
{
    $request = Symfony\Component\HttpFoundation\Request::createFromGlobals();
    $solotick->handle($request, function () {
        [$code, $body] = next_code();
        if ($code === 'exit') {
            exit('the beginning');
        }
        if ($code === 'torn') {
            return new Symfony\Component\HttpFoundation\StreamedResponse(fn () => print('the beginning'));
        }
        return new Symfony\Component\HttpFoundation\Response($body, (int) $code,
            ['Content-Type' => 'application/json'] + ($code === '503' ? ['Retry-After' => '7'] : []));
    })->prepare($request)->send();
}

function solotick(string $secret): Solotick
{
    return new Solotick($secret, new Failing(db()), getenv('KIND') === 'psr15' ? new Nyholm\Psr7\Factory\Psr17Factory() : null);
}

if (PHP_SAPI === 'cli') {
    [, $kind, $secret] = $argv;
    solotick($secret); // refuses an empty one
    putenv('DATABASE=' . tempnam(sys_get_temp_dir(), 'solotick'));
    db()->exec('PRAGMA journal_mode = WAL; CREATE TABLE counts (job TEXT PRIMARY KEY, n INT);' . SolotickStore::TABLES);
    $environment = ['KIND' => $kind, 'SECRET' => $secret, 'PHP_CLI_SERVER_WORKERS' => '12'] + getenv();
    // Frameworks do not let PHP show errors, and plain scripts may. None are logged.
    $command = 'exec "$0" -d "display_errors=$1" -d error_log=/dev/null -S 127.0.0.1:0 app.php 2>&1';
    pcntl_exec('/bin/sh', ['-c', $command, PHP_BINARY, $kind === 'plain' ? '1' : '0'], $environment);
}

if (getenv('KIND') === 'psr15') {
    require 'Nyholm/Psr7/autoload.php';
} elseif (getenv('KIND') === 'laravel') {
    require 'Symfony/Component/HttpFoundation/autoload.php';
}
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
if ($path === '/count') {
    $count = db()->prepare('SELECT n FROM counts WHERE job = ?');
    $count->execute([$_GET['job']]);
    echo $count->fetchColumn() ?: 0;
    return;
}
if ($path === '/started') {
    (new SolotickStore(db()))->free($_GET['replica']);
    return;
}
if ($path === '/forget') {
    (new SolotickStore(db(), (int) $_GET['keep']))->forget();
    return;
}
$_SERVER['REMOTE_ADDR'] = $_SERVER['HTTP_TEST_PEER'] ?? $_SERVER['REMOTE_ADDR']; // the peer that a test pretends to be
getenv('KIND')(solotick(getenv('SECRET')));
