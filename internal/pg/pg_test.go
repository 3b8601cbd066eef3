package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

func verdict(code string) error { return &pgconn.PgError{Code: code} }

func TestADatabaseThatDoesNotAnswerIsUnavailableAndItsVerdictsAreNot(t *testing.T) {
	_, refused := pgconn.Connect(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=1")
	for _, err := range []error{
		refused, &net.OpError{Op: "read", Err: errors.New("reset")}, io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded,
		verdict("57P01"), verdict("57014"), verdict("53300"), verdict("08006"), verdict("55P03"), verdict("40P01"), verdict("25P03"), verdict("25006"),
	} {
		if said := pg.Said("read", fmt.Errorf("query: %w", err)); !pg.Down(err) || !errors.Is(said, seatmap.ErrUnavailable) || !errors.Is(said, err) {
			t.Errorf("%v is said to be %v", err, said)
		}
	}
	for _, err := range []error{pgx.ErrNoRows, verdict("23505"), verdict("22P02"), verdict("42P01"), verdict(""), errors.New("a bug")} {
		if said := pg.Said("read", err); pg.Down(err) || errors.Is(said, seatmap.ErrUnavailable) || !errors.Is(said, err) {
			t.Errorf("%v is said to be %v", err, said)
		}
	}
	if pg.Down(nil) || pg.Said("read", nil) != nil {
		t.Error("nothing is an error")
	}
}
