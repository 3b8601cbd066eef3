package waitingroom

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"unicode"
)

// A code is a serial number and a MAC over it and the event, in the base 32 of Crockford:
// whoever types it may confuse O with 0 and I or L with 1, and write it large or small.
const (
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	serialDigits = 5  // 25 bits
	macDigits    = 13 // 65 bits
	codeDigits   = serialDigits + macDigits
	codeGroup    = 6 // are written together
	codeLimit    = 4 * codeDigits
)

// LastCode is the highest serial number of a code; the lowest is 1.
const LastCode = 1<<(5*serialDigits) - 1

// Code returns the code of an event with a serial number. It is always the same.
func (k *Keys) Code(event string, serial int) string {
	digits := k.codeOf(event, serial)
	var b strings.Builder
	for n, d := range digits {
		if n > 0 && n%codeGroup == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(codeAlphabet[d])
	}
	return b.String()
}

func (k *Keys) codeOf(event string, serial int) (digits [codeDigits]byte) {
	m := hmac.New(sha256.New, k.codes)
	m.Write(binary.BigEndian.AppendUint32(nil, uint32(len(event))))
	m.Write([]byte(event))
	m.Write(binary.BigEndian.AppendUint32(nil, uint32(serial)))
	sum := m.Sum(nil)
	for n := range serialDigits {
		digits[n] = byte(serial>>(5*(serialDigits-1-n))) & 31
	}
	for n := range macDigits {
		at := 5 * n
		two := binary.BigEndian.Uint16(sum[at/8:])
		digits[serialDigits+n] = byte(two>>(11-at%8)) & 31
	}
	return digits
}

// OpenCode returns the serial number of a code for an event, however it is typed.
// ErrBadCode.
func (k *Keys) OpenCode(event, text string) (serial int, err error) {
	digits, ok := typed(text)
	if !ok {
		return 0, ErrBadCode
	}
	for _, d := range digits[:serialDigits] {
		serial = serial<<5 | int(d)
	}
	want := k.codeOf(event, serial)
	if serial == 0 || !hmac.Equal(digits[:], want[:]) {
		return 0, ErrBadCode
	}
	return serial, nil
}

// typed reads what somebody has typed, as far as it may be a code.
func typed(text string) (digits [codeDigits]byte, ok bool) {
	if len(text) > codeLimit {
		return digits, false
	}
	n := 0
	for _, r := range strings.ToUpper(text) {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) {
			continue
		}
		switch r {
		case 'O':
			r = '0'
		case 'I', 'L':
			r = '1'
		}
		d := strings.IndexRune(codeAlphabet, r)
		if d < 0 || n == codeDigits {
			return digits, false
		}
		digits[n] = byte(d)
		n++
	}
	return digits, n == codeDigits
}
