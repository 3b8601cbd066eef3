package sandbox

import (
	"time"

	"seatcast/checkout"
)

// Card is a card number and how it behaves.
type Card struct {
	Number string `json:"number"`
	Does   string `json:"does"`
}

// Numbers of cards. Each passes a Luhn check; none is anybody's.
const (
	CardApprove      = "4242424242424242"
	CardDecline      = "4000000000000002"
	CardSlow         = "4000000000003220"
	CardAuthenticate = "4000000000003063"
	CardDuplicate    = "4000000000000259"
	CardEarly        = "4000000000000341"
	CardReversed     = "4000000000000424"
	CardLost         = "4000000000000127"
	CardLate         = "4000000000000069"
	CardDown         = "4000000000005001"
	CardRefused      = "4000000000000119"
	CardLapse        = "4000000000006736"
	CardFlaky        = "4000000000006322"

	CardRefundSlow     = "4000000000007726"
	CardRefundFails    = "4000000000003055"
	CardRefundReturned = "4000000000005126"
)

// Cards lists every card. Any other number is declined.
var Cards = []Card{
	{CardApprove, "is approved at once"},
	{CardDecline, "is declined at once; the seats stay held"},
	{CardSlow, "takes a few seconds, as a bank that asks its customer does; the verdict comes by webhook"},
	{CardAuthenticate, "wants its owner to approve or decline on a page of the bank's; after some minutes without either it fails"},
	{CardDuplicate, "is approved at once; every webhook is sent twice"},
	{CardEarly, "is approved; the webhook arrives before the answer to the payment"},
	{CardReversed, "is approved at once; the webhooks arrive in reverse: what came of the money, and then that it was authorised"},
	{CardLost, "takes a few seconds; no webhook is ever sent"},
	{CardLate, "is approved long after the hold has ended"},
	{CardDown, "is approved, but for some seconds every question about it is an error, the payment itself too"},
	{CardRefused, "is approved at once; taking the money is refused"},
	{CardLapse, "is approved at once; the authorisation lapses before the money is taken"},
	{CardFlaky, "is approved at once; taking the money is an error twice, and then works"},
	{CardRefundSlow, "is approved at once; a refund is pending for a few seconds"},
	{CardRefundFails, "is approved at once; a refund is refused"},
	{CardRefundReturned, "is approved at once; a refund is pending for a few seconds and then fails"},
}

// flakes is how often the capture of CardFlaky is an error.
const flakes = 2

// beginning is how a payment with a card begins.
type beginning struct {
	state  checkout.PaymentState
	reason string
	in     time.Duration // when it is decided, of processing
	lapses time.Duration // when its authorisation does; 0: never
	down   time.Duration // how long nothing is answered about it
}

func (s *Sandbox) begins(card string) beginning {
	switch card {
	case CardApprove, CardDuplicate, CardEarly, CardReversed, CardRefused, CardFlaky, CardRefundSlow, CardRefundFails, CardRefundReturned:
		return beginning{state: checkout.PaymentAuthorized}
	case CardLapse:
		return beginning{state: checkout.PaymentAuthorized, lapses: s.o.Lapse}
	case CardDown:
		return beginning{state: checkout.PaymentAuthorized, down: s.o.Down}
	case CardSlow, CardLost:
		return beginning{state: checkout.PaymentProcessing, in: s.o.Delay}
	case CardAuthenticate:
		return beginning{state: checkout.PaymentProcessing, in: s.o.Authenticate}
	case CardLate:
		return beginning{state: checkout.PaymentProcessing, in: s.o.Late}
	case CardDecline:
		return beginning{state: checkout.PaymentFailed, reason: "card_declined"}
	}
	return beginning{state: checkout.PaymentFailed, reason: "unknown_card"}
}

// refunds says how a refund to a card begins.
func refunds(card string) (state checkout.RefundState, reason string) {
	switch card {
	case CardRefundSlow, CardRefundReturned:
		return checkout.RefundPending, ""
	case CardRefundFails:
		return checkout.RefundFailed, "refund_declined"
	}
	return checkout.RefundSucceeded, ""
}

// webhooks says how often the webhook about a step of a payment is sent.
func webhooks(card string) int {
	switch card {
	case CardLost:
		return 0
	case CardDuplicate:
		return 2
	}
	return 1
}
