package waitingroom

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"seatcast/waitingroom/draw"
)

// usedCode is a code and whose ticket it was used by.
type usedCode struct {
	code   int
	ticket draw.ID
}

// used returns the oldest of the codes that were used and are not written down.
func (l *Line) used(ctx context.Context, event string) (all []usedCode, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	texts, err := l.rdb.LRange(ctx, usedKey(event), 0, batchSize-1).Result()
	if err != nil {
		return nil, away(err)
	}
	for _, text := range texts {
		code, id, _ := strings.Cut(text, " ")
		var u usedCode
		if u.code, err = strconv.Atoi(code); err == nil {
			err = u.ticket.UnmarshalText([]byte(id))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// usedWritten drops the oldest of the codes that were used.
func (l *Line) usedWritten(ctx context.Context, event string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return away(l.rdb.LTrim(ctx, usedKey(event), int64(n), -1).Err())
}

// coded puts back which codes were used, of a room that is cold.
func (l *Line) coded(ctx context.Context, event string, all []usedCode) error {
	for part := range slices.Chunk(all, batchSize) {
		_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, u := range part {
				p.HSetNX(ctx, codeKey(event), strconv.Itoa(u.code), u.ticket.String())
			}
			return nil
		})
		if err != nil {
			return away(err)
		}
	}
	return nil
}

// suspect has accounts wait where nobody is let in, with the numbers they have. It may
// be repeated, also of a room that is cold.
func (l *Line) suspect(ctx context.Context, event string, ids ...draw.ID) error {
	return l.each(ctx, suspectScript, []string{lineKey(event), tarKey(event), tryKey(event), seenKey(event)}, ids)
}

// trust has accounts wait with all others again. It may be repeated.
func (l *Line) trust(ctx context.Context, event string, ids ...draw.ID) error {
	return l.each(ctx, trustScript, []string{lineKey(event), tarKey(event)}, ids)
}

func (l *Line) each(ctx context.Context, script script, keys []string, ids []draw.ID) error {
	for part := range slices.Chunk(ids, batchSize) {
		args := make([]any, len(part))
		for n, id := range part {
			args[n] = id.String()
		}
		if _, err := l.runs(ctx, script, keys, args...); err != nil {
			return err
		}
	}
	return nil
}

// suspects counts those who wait where nobody is let in, or may.
func (l *Line) suspects(ctx context.Context, event string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n, err := l.rdb.ZCard(ctx, tarKey(event)).Result()
	return n, away(err)
}

// suspected returns them.
func (l *Line) suspected(ctx context.Context, event string) (all []draw.ID, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	texts, err := l.rdb.ZRange(ctx, tarKey(event), 0, -1).Result()
	if err != nil {
		return nil, away(err)
	}
	for _, text := range texts {
		var id draw.ID
		if err := id.UnmarshalText([]byte(text)); err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, nil
}
