package waitingroom

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"seatcast/waitingroom/draw"
)

func TestAProofOfAReleaseThatNamedNoRoomIsOfTheRoomThatWasThereWhenItWasIssued(t *testing.T) {
	keys, err := ParseKeys("", "a secret of the tests")
	if err != nil {
		t.Fatal(err)
	}
	const wait = 30 * time.Second
	now := time.Now()
	unnamed := &Room{Event: "e", Terms: Terms{Proof: 1000}, made: time.UnixMicro(0)}
	room := &Room{Event: "e", Terms: Terms{Proof: 1000}, made: now.Add(-5 * time.Minute)}
	for ago, want := range map[time.Duration]error{4 * time.Minute: nil, 6 * time.Minute: ErrBadProof} {
		id := draw.ID{7}
		c, err := keys.Challenge(unnamed, id, now.Add(-ago))
		if err != nil {
			t.Fatal(err)
		}
		c.Salt = strings.Replace(c.Salt, "room=0&", "", 1)
		c.Challenge = hashed(c.Salt, 5)
		proof, err := json.Marshal(solution{c.Algorithm, c.Challenge, 5, c.Salt, keys.vouch(c.Challenge)})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := keys.OpenProof(base64.StdEncoding.EncodeToString(proof), room, id, now); !errors.Is(err, want) {
			t.Errorf("work of %v ago, for a room of five minutes ago: %v", ago, err)
		}
		waited, err := keys.SignWait(unnamed, id, wait, now.Add(-ago))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := keys.OpenWait(waited, room, id, wait, now); !errors.Is(err, want) {
			t.Errorf("a wait of %v ago, for a room of five minutes ago: %v", ago, err)
		}
	}
}
