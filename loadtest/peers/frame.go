package peers

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"seatcast/seatmap"
)

// Event is the event that everybody watches.
const Event = "loadtest"

// event is a delta as the Server-Sent Event seatcast writes.
func event(delta []byte, n int64) []byte {
	return fmt.Appendf(nil, "event: delta\nid: %d\ndata: %s\n\n", n, delta)
}

// text is a delta as the message seatcast writes over WebSocket.
func text(delta []byte) []byte {
	return fmt.Appendf(nil, `{"topic":%s,"type":"delta",%s`, strconv.Quote(seatmap.Topic(Event)), delta[1:])
}

// wsFrame frames a text message as a server sends it.
func wsFrame(payload []byte) []byte {
	b := []byte{0x81}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}
