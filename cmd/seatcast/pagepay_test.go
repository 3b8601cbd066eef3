package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"seatcast/checkout/stripe/stripetest"
	"seatcast/internal/browsertest"
	"seatcast/seatmap"
)

// fakeStripe stands in for Stripe's script, of which there is none here: it does
// what the page asks of that, as its documentation has it, and notes what it was
// asked. Its payment element is one field, in which the name of a PaymentMethod
// stands for a card; like Stripe's it is lost when it is moved. A step of the
// shopper's ends when the test calls approve, or unreachable.
const fakeStripe = `
window.asked = [];
const note = (...what) => { window.asked.push(JSON.stringify(what)); };
window.Stripe = (key) => {
	note('Stripe', key);
	const field = document.createElement('input');
	field.id = 'stripe-field';
	return {
		elements(options) {
			note('elements', { ...options, appearance: null });
			let watch;
			const on = {};
			const payment = {
				on(what, f) { on[what] = f; },
				mount(box) {
					box.append(field);
					field.addEventListener('input', () => on.change());
					watch = new MutationObserver((all) => { if (all.some((m) => [...m.removedNodes].some((n) => n.contains(box)))) note('moved'); });
					watch.observe(document.getElementById('panel'), { childList: true, subtree: true });
					setTimeout(() => on.ready());
				},
				destroy() { note('destroy'); watch.disconnect(); field.remove(); },
			};
			return {
				create(type) { note('create', type); return payment; },
				getElement: () => payment,
				update(changed) { note('update', changed); },
				async submit() { return field.value ? {} : { error: { type: 'validation_error', code: 'incomplete_number', message: 'Your card number is incomplete.' } }; },
			};
		},
		async createConfirmationToken({ params }) {
			if (field.value === 'unreachable') return { error: { type: 'api_connection_error' } };
			note('createConfirmationToken', params.return_url);
			return { confirmationToken: { id: 'ctoken_' + field.value } };
		},
		async handleNextAction({ clientSecret }) {
			note('handleNextAction', clientSecret);
			return new Promise((done) => {
				window.approve = () => done({ paymentIntent: {} });
				window.unreachable = () => done({ error: { type: 'api_connection_error' } });
			});
		},
	};
};`

// asked are the calls to Stripe's script that begin so, each as JSON.
func (p page) asked(what string) []string {
	p.t.Helper()
	all := browsertest.Eval[[]string](p.Page, `return window.asked ?? []`)
	return slices.DeleteFunc(all, func(one string) bool { return !strings.HasPrefix(one, `["`+what+`"`) })
}

func TestThePagePaysWithStripesElementAndSurvivesItsBank(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	api := stripetest.New(t)
	n := h.fated("demo", "SEATCAST_STRIPE_SECRET_KEY=sk_test_1", "SEATCAST_STRIPE_WEBHOOK_SECRETS=whsec_1", "SEATCAST_STRIPE_PUBLISHABLE_KEY=pk_test_1",
		"SEATCAST_STRIPE_API="+api.URL)
	p := h.visit(t, n, "live")
	p.Scripts("https://js.stripe.com/*", fakeStripe)
	if browsertest.Eval[bool](p.Page, `return 'Stripe' in window`) {
		t.Error("the script is loaded before there is anything to pay")
	}
	p.tap(0)
	p.press(holdButton)
	p.stage("held")
	p.Until("it can be paid", payButton+` && !`+payButton+`.disabled`)
	if got := fmt.Sprint(p.asked("Stripe"), p.asked("elements"), p.asked("create")); got != `[["Stripe","pk_test_1"]] [["elements",{"mode":"payment","amount":1000,"currency":"eur","captureMethod":"manual","paymentMethodTypes":["card"],"appearance":null}]] [["create","payment"]]` {
		t.Errorf("Stripe's script was asked %s", got)
	}
	pay := func(method string) {
		t.Helper()
		browsertest.Eval[int](p.Page, fmt.Sprintf(`const f = document.getElementById('stripe-field'); f.value = %q; f.dispatchEvent(new Event('input')); return 0;`, method))
		p.press(payButton)
	}
	heard := func(words string) {
		t.Helper()
		p.told(words)
		p.Until("a screen reader hears "+words, fmt.Sprintf(`document.getElementById('announcer').innerText.includes(%q)`, words))
	}
	p.press(payButton)
	heard("Something is missing")
	pay("unreachable")
	heard("We cannot reach who takes the payments")
	if made := api.Intents(); len(made) != 0 {
		t.Errorf("Stripe has %+v", made)
	}
	pay(stripetest.CardDeclined)
	p.declined("was declined")
	p.stage("held")
	p.Until("what was typed is still there", fmt.Sprintf(`document.getElementById('stripe-field').value === %q && document.getElementById('stripe-field').offsetParent`, stripetest.CardDeclined))
	if lost := append(p.asked("moved"), p.asked("destroy")...); len(lost) > 0 {
		t.Errorf("the element was lost: %s", lost)
	}

	pay(stripetest.CardAsks)
	p.stage("paying")
	secret := fmt.Sprintf(`["handleNextAction","%s_secret"]`, api.Intents()[1].ID)
	takes := func() {
		t.Helper()
		p.Until("the step is asked for", `window.approve`)
		if got := p.asked("handleNextAction"); len(got) != 1 || got[0] != secret {
			t.Errorf("Stripe's script was asked for %s, want %s", got, secret)
		}
	}
	takes()
	p.Reload()
	p.stage("paying")
	takes()
	browsertest.Eval[int](p.Page, `window.unreachable(); window.asked = []; window.approve = null; return 0;`)
	heard("We cannot reach who takes the payments")
	p.press(`document.querySelector('[data-key=approve]')`)
	takes()
	i := api.Intents()[1]
	api.Change(t, i.Metadata["attempt"], func(i *stripetest.Intent) { i.Status, i.Charge = "requires_capture", "ch_"+i.ID })
	browsertest.Eval[int](p.Page, `window.approve(); return 0;`)
	p.stage("sold")
	p.Until("the ticket is valid", `document.querySelectorAll('.ticket.valid').length === 1`)
	if all := api.Intents(); len(all) != 2 || all[1].Status != "succeeded" {
		t.Errorf("Stripe has %+v", all)
	}
	p.clean()
	h.balanced(t.Context())
}

func TestThePageSaysThatStripesScriptDidNotComeAndTriesAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo", "SEATCAST_STRIPE_SECRET_KEY=sk_test_1", "SEATCAST_STRIPE_WEBHOOK_SECRETS=whsec_1", "SEATCAST_STRIPE_PUBLISHABLE_KEY=pk_test_1")
	p := h.visit(t, n, "live")
	p.Refuses("https://js.stripe.com/*")
	p.tap(0)
	p.press(holdButton)
	p.stage("held")
	p.Until("it says so", `document.querySelector('.means [role=alert]')?.innerText.includes('cannot reach who takes the payments')`)
	if !browsertest.Eval[bool](p.Page, `return `+payButton+`.disabled`) {
		t.Error("it can be paid with nothing")
	}
	p.Scripts("https://js.stripe.com/*", fakeStripe)
	p.press(`document.querySelector('[data-key=means]')`)
	p.Until("it can be paid", `!`+payButton+`.disabled && document.getElementById('stripe-field')`)
}

// askingCard wants its owner to approve the payment at the bank.
const askingCard = "4000000000003063"

func TestAShopperApprovesAtTheBankAndComesBackByWhicheverWay(t *testing.T) {
	t.Parallel()
	h, _, p := atMap(t)
	p.tap(0)
	p.press(holdButton)
	p.stage("held")
	pay := func() {
		t.Helper()
		p.Until("it can be paid", payButton+` && !`+payButton+`.disabled`)
		browsertest.Eval[int](p.Page, fmt.Sprintf(`const card = document.querySelector('[data-key=card]'); card.value = %q; card.dispatchEvent(new Event('change')); return 0;`, askingCard))
		p.press(payButton)
	}
	const atBank, approve = `document.title.includes('bank')`, `document.querySelector('[data-key=approve]')`
	verdict := func(what string) {
		t.Helper()
		p.Until("the bank asks", atBank+` && document.querySelector('[value=`+what+`]')`)
		browsertest.Eval[int](p.Page, `setTimeout(() => document.querySelector('[value=`+what+`]').click()); return 0;`)
	}
	pay()
	p.Until("the bank asks", atBank)
	p.Shot("bank", browsertest.Desk)
	p.Back()
	p.stage("paying")
	p.Until("the bank can be gone to", approve)
	p.Reload()
	p.stage("paying")
	p.Until("the bank can still be gone to", approve)
	if both := browsertest.Eval[bool](p.Page, `return document.querySelector('.panel .working') !== null`); both {
		t.Error("it waits for the bank, which waits for the shopper")
	}
	if says := p.notes(); says != "" {
		t.Errorf("what the order says is said again: %s", says)
	}
	p.Shot("paying", browsertest.Desk)
	if m := h.truth(t.Context(), h.rdb); m.At(0) != seatmap.Held {
		t.Errorf("meanwhile the seat is %v", m.At(0))
	}
	p.press(approve)
	verdict("decline")
	p.stage("held")
	p.declined("was not approved")

	pay()
	verdict("approve")
	p.stage("sold")
	p.Until("the ticket is valid", `document.querySelectorAll('.ticket.valid').length === 1`)
	if made := h.count(t.Context(), `SELECT count(*) FROM attempts`); made != 2 {
		t.Errorf("%d attempts were made", made)
	}
	p.clean()
	h.balanced(t.Context())
}
