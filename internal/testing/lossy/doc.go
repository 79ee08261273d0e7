// Package lossy is a proxy between a Redis client and a Redis that loses, delays and repeats what the test tells it to,
// and nothing else: it draws no random numbers, and every fault is aimed at one request (the third EVALSHA of a given
// script, say) and reports when it has struck. It reads the protocol just far enough to know where a request and its
// reply begin and end.
//
// It works over TCP (Listen) and, in a testing/synctest bubble, over in-memory connections (Dial). Unlike a bare
// net.Pipe it buffers both directions without bound, so that a client that writes a long pipeline before it reads does
// not deadlock with a server that answers as it reads.
//
// Limits: no subscriptions (a push message passes, but a channel's messages are no replies), no TLS, and what was sent
// behind a lost request on the same connection is lost with it.
package lossy
