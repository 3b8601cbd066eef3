// Package peers starts the servers that are measured, each the same way: on the
// loopback, on the cores it is given, alone, and fresh for every run.
//
//   - seatcast: a real `seatcast serve` with the role hub. What feeds it is not
//     counted: a private Redis, Postgres and NATS, and a second `seatcast serve`
//     with the role api, on the reader's cores. A change is a real booking over
//     HTTP, or its return; the hub hears of it over NATS.
//   - raw: the floor. An epoll loop in C that accepts, answers the handshake and
//     writes the bytes it is given to every socket; nothing else. Built with cc;
//     where there is none the same loop in Go.
//   - nchan: nginx with the module nchan, one worker.
//   - centrifugo: its unidirectional SSE and WebSocket transports.
//   - nethttp: a goroutine for each client, in Go: net/http for SSE and
//     coder/websocket for WebSocket, as one would write it first.
//
// All but seatcast are sent payloads of the same form and size as its deltas:
// the same seats, numbers of as many digits. raw and nethttp write them in the
// very frames of seatcast; nchan and Centrifugo frame them their own way.
package peers
