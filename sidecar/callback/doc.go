// Package callback keeps the runs that apps end by themselves. An app accepts such a run by the answer 202. From then
// on it reports to the API of the replica that called it: it sends heartbeats while it works, and finishes the run.
//
// A heartbeat that is answered without an error lets the app work for the length of a heartbeat, counted from when the
// app sent it. For that time:
//
//   - The lease of the run lasts: a heartbeat is refused if the lease may end before.
//   - The replica does not take the run for ended, unless the app has finished it.
//
// So an app that works only as long as it may has stopped before another run of its job begins, even if its replica
// dies. An app that stands still for longer than it may, and then works on, is not stopped: the fencing token is for
// that.
//
//	         Open                 heartbeat, 202            heartbeat
//	call ──────────▶ open ─────────────────────▶ works ◀──────────────┐
//	                  │                            │ └────────────────┘
//	                  │ another answer             ├─ finish ───────────────────▶ reported
//	                  ▼                            ├─ no heartbeat ─────────────▶ silent
//	                closed                         └─ told to end, time is over ▶ cancelled
package callback
