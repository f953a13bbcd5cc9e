package llm

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
)

// perDollar is how many micro-cents a dollar has.
const perDollar = 100_000_000

// defaults are the prices that come with the program: the vendors' public list prices at the time
// of writing, in hundredths of a cent for a million tokens (10,000 are a dollar). Where a vendor
// charges more for long contexts, this is the higher price. A name also matches its dated and
// latest versions ("gpt-4o-2024-11-20"), and no others. A model without a known price is not
// called until somebody sets one.
var defaults = []struct {
	model                         string
	input, output, cacheR, cacheW int64
}{
	{"claude-opus-4-5", 50_000, 250_000, 5_000, 62_500},
	{"claude-opus-4-1", 150_000, 750_000, 15_000, 187_500},
	{"claude-opus-4", 150_000, 750_000, 15_000, 187_500},
	{"claude-sonnet-4-5", 30_000, 150_000, 3_000, 37_500},
	{"claude-sonnet-4", 30_000, 150_000, 3_000, 37_500},
	{"claude-3-7-sonnet", 30_000, 150_000, 3_000, 37_500},
	{"claude-3-5-sonnet", 30_000, 150_000, 3_000, 37_500},
	{"claude-haiku-4-5", 10_000, 50_000, 1_000, 12_500},
	{"claude-3-5-haiku", 8_000, 40_000, 800, 10_000},
	{"claude-3-haiku", 2_500, 12_500, 300, 3_000},
	{"gpt-5", 12_500, 100_000, 1_250, 12_500},
	{"gpt-5.1", 12_500, 100_000, 1_250, 12_500},
	{"gpt-5-codex", 12_500, 100_000, 1_250, 12_500},
	{"gpt-5-mini", 2_500, 20_000, 250, 2_500},
	{"gpt-5-nano", 500, 4_000, 50, 500},
	{"gpt-5-pro", 150_000, 1_200_000, 150_000, 150_000},
	{"gpt-4.1", 20_000, 80_000, 5_000, 20_000},
	{"gpt-4.1-mini", 4_000, 16_000, 1_000, 4_000},
	{"gpt-4.1-nano", 1_000, 4_000, 250, 1_000},
	{"gpt-4o", 25_000, 100_000, 12_500, 25_000},
	{"gpt-4o-mini", 1_500, 6_000, 750, 1_500},
	{"o1", 150_000, 600_000, 75_000, 150_000},
	{"o3", 20_000, 80_000, 5_000, 20_000},
	{"o3-mini", 11_000, 44_000, 5_500, 11_000},
	{"o4-mini", 11_000, 44_000, 2_750, 11_000},
	{"text-embedding-3-small", 200, 0, 200, 200},
	{"text-embedding-3-large", 1_300, 0, 1_300, 1_300},
	{"gemini-2.5-pro", 25_000, 150_000, 6_250, 25_000},
	{"gemini-2.5-flash", 3_000, 25_000, 750, 3_000},
	{"gemini-2.5-flash-lite", 1_000, 4_000, 250, 1_000},
	{"gemini-2.0-flash", 1_000, 4_000, 250, 1_000},
	{"gemini-embedding-001", 1_500, 0, 1_500, 1_500},
}

// Defaults returns the prices that come with the program, by model.
func Defaults() []money.ModelPrice {
	out := []money.ModelPrice{}
	for _, d := range defaults {
		const unit = perDollar / 10_000
		out = append(out, money.ModelPrice{Model: d.model, Input: d.input * unit, Output: d.output * unit,
			CacheRead: d.cacheR * unit, CacheWrite: d.cacheW * unit})
	}
	slices.SortFunc(out, func(a, b money.ModelPrice) int { return strings.Compare(a.Model, b.Model) })
	return out
}

var builtIn = Defaults()

// priceOf returns the price of an upstream's model: the company's, the mesh's, or the default of
// the program; of several patterns that match, that of the most specific one. An upstream that
// is free has the price 0 if none is set.
func priceOf(p money.ModelProvider, model string, sets ...[]money.ModelPrice) (money.ModelPrice, bool) {
	long := p.Name + "/" + model
	for _, set := range sets {
		best, found := money.ModelPrice{}, false
		for _, row := range set {
			if (fits(row.Model, long) || fits(row.Model, model)) && (!found || says(row.Model) > says(best.Model)) {
				best, found = row, true
			}
		}
		if found {
			return best, true
		}
	}
	if p.Free {
		return money.ModelPrice{Model: model}, true
	}
	for _, row := range builtIn {
		if rest, ok := strings.CutPrefix(model, row.Model); ok && (rest == "" || rest == "-latest" ||
			strings.HasPrefix(rest, "-20")) {
			return row, true
		}
	}
	return money.ModelPrice{}, false
}

// Reckon returns the cost of a model's usage outside the gateway, by the first set of prices that
// has the model, or by the default price. ok is false if there is no price.
func Reckon(provider, model string, u entity.Usage, sets ...[]money.ModelPrice) (cost core.Money, ok bool) {
	p, ok := priceOf(money.ModelProvider{Name: provider}, model, sets...)
	if !ok {
		return 0, false
	}
	return usage{input: u.InputTokens, cacheRead: u.CachedInputTokens, output: u.OutputTokens}.cost(p), true
}

// fits reports whether a pattern matches name.
func fits(pattern, name string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, head)
	}
	return pattern == name
}

// says returns how specific a pattern is: a whole name is more specific than any prefix.
func says(pattern string) int {
	if strings.HasSuffix(pattern, "*") {
		return len(pattern)
	}
	return len(pattern) + 1_000
}

// times returns the cost of n tokens, rounded up, at most MaxMoney.
func times(n, perMillion int64) core.Money {
	if n <= 0 || perMillion <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(perMillion))
	lo, carry := bits.Add64(lo, 999_999, 0)
	if hi += carry; hi >= 1_000_000 {
		return core.MaxMoney
	}
	q, _ := bits.Div64(hi, lo, 1_000_000)
	return core.Money(min(q, uint64(core.MaxMoney)))
}

// A usage counts the tokens of an answer by kind. Long counts tokens written to a cache for an
// hour, at twice the price of input.
type usage struct {
	input, cacheRead, cacheWrite, long, output int64
	inKnown, outKnown                          bool
	billed                                     core.Money // what the upstream says that it charged for all of it
	billKnown                                  bool
}

// prompt returns all input tokens, also those read from or written to a cache.
func (u usage) prompt() int64 { return u.input + u.cacheRead + u.cacheWrite + u.long }

// cost returns the cost of u at a price.
func (u usage) cost(p money.ModelPrice) core.Money {
	sum := times(u.input, p.Input)
	for _, m := range []core.Money{times(u.cacheRead, p.CacheRead), times(u.cacheWrite, p.CacheWrite),
		times(u.long, max(2*p.Input, p.CacheWrite)), times(u.output, p.Output)} {
		sum = sum.Plus(m)
	}
	return sum
}

// worstInput returns the highest possible cost of n tokens of input.
func worstInput(n int64, p money.ModelPrice, long bool) core.Money {
	most := max(p.Input, p.CacheRead, p.CacheWrite)
	if long {
		most = max(most, 2*p.Input)
	}
	return times(n, most)
}

// affordable returns how many tokens of output the money pays for.
func affordable(m core.Money, perMillion int64) int64 {
	if perMillion <= 0 {
		return maxOutput * maxChoices
	}
	hi, lo := bits.Mul64(uint64(max(m, 0)), 1_000_000)
	if hi >= uint64(perMillion) {
		return maxOutput * maxChoices
	}
	q, _ := bits.Div64(hi, lo, uint64(perMillion))
	return int64(min(q, maxOutput*maxChoices))
}

// hidesThinking reports whether an upstream bills thinking that it does not stream. The streamed
// text is then no bound of the output.
func hidesThinking(p money.ModelProvider, model string) bool {
	switch p.Kind {
	case money.ModelOpenAI, money.ModelOpenRouter, money.ModelGemini, money.ModelCompatible:
		for _, head := range []string{"o1", "o3", "o4", "gpt-5", "codex", "gemini-2.5", "gemini-3"} {
			if strings.Contains("/"+model, "/"+head) {
				return true
			}
		}
	}
	return false
}

// A meter counts an answer while it is passed on.
type meter struct {
	bytes  int64 // of text, thinking and arguments
	pieces int64
	most   int64 // tokens that the answer may have
	use    usage
}

func (m *meter) count(ds []delta) {
	for _, d := range ds {
		if d.kind == stopDelta {
			continue
		}
		if d.kind == callDelta {
			m.bytes += int64(len(d.name))
		}
		if d.text != "" {
			m.bytes += int64(len(d.text))
			m.pieces++
		}
	}
}

// learn stores the usage that an upstream reports. It ignores impossible values.
func (m *meter) learn(u usage) {
	for _, n := range []int64{u.input, u.cacheRead, u.cacheWrite, u.long, u.output} {
		if n < 0 || n > money.MaxEventTokens {
			return
		}
	}
	if u.inKnown {
		m.use.input, m.use.cacheRead, m.use.cacheWrite, m.use.long, m.use.inKnown = u.input, u.cacheRead, u.cacheWrite,
			u.long, true
	}
	if u.outKnown {
		m.use.output, m.use.outKnown = u.output, true
	}
	if u.billKnown {
		m.use.billed, m.use.billKnown = u.billed, true
	}
}

// charge returns the cost of a call with usage u: by the price table, or, for an upstream that
// reports its bill, by that. If the upstream does not account for all that it sent, the cost is
// at least that of the table.
func (m *meter) charge(u usage, p money.ModelProvider, price money.ModelPrice) core.Money {
	cost := u.cost(price)
	switch {
	case p.Kind != money.ModelOpenRouter || !m.use.billKnown:
		return cost
	case u.input == m.use.input && u.output == m.use.output:
		return m.use.billed
	}
	return max(cost, m.use.billed)
}

// over reports whether the answer is longer than allowed. A token has at least one byte, and a
// piece at least one token; both are checked with a margin, so that only an upstream that
// ignores its bound is cut off.
func (m *meter) over() bool {
	return m.pieces > m.most+m.most/4+eventSlack || m.bytes > m.most*maxTokenBytes+1024
}

// settled returns the usage with which the call is settled. Where the upstream reported nothing,
// or what contradicts its answer, the bound is used: for the input the reserved one; for the
// output one token per streamed byte, up to the granted number, or the granted number where
// thinking is hidden. So an answer that breaks off never costs less than the upstream can bill.
func (m *meter) settled(inBound int64, hidden bool) usage {
	u := m.use
	if !u.inKnown {
		u.input = inBound
	}
	if !u.outKnown || u.output*128+1024 < m.bytes {
		u.output = min(m.bytes, m.most)
		if hidden {
			u.output = m.most
		}
	}
	return u
}
