package rates

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const tick = 20 * time.Millisecond

func pid(t require.TestingT, p, i, d, least float64) *PID {
	e, err := New(Config{Interval: tick, Proportional: p, Integral: i, Derived: d, MinRate: least})
	require.NoError(t, err)
	return e
}

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// RC1: the first estimate is none, the second is what was processed.
func TestFirstIsNone(t *testing.T) {
	e := pid(t, 1, 0, 0, 10)
	_, ok := e.Estimate(at(0), 10, 10*time.Millisecond, 0)
	require.False(t, ok)
	rate, ok := e.Estimate(at(10), 10, 10*time.Millisecond, 0)
	require.True(t, ok)
	require.InDelta(t, 1000, rate, 1e-9)
}

// RC1, I2: what says nothing changes nothing.
func TestSkips(t *testing.T) {
	e := pid(t, 1, 0, 0, 10)
	e.Estimate(at(0), 10, 10*time.Millisecond, 0)
	e.Estimate(at(10), 10, 10*time.Millisecond, 0)
	before := *e
	for _, x := range []struct {
		ms, records int64
		processing  time.Duration
	}{{10, 10, tick}, {9, 10, tick}, {20, 0, tick}, {20, -10, tick}, {20, 10, 0}, {20, 10, -tick}} {
		_, ok := e.Estimate(at(x.ms), x.records, x.processing, 0)
		require.False(t, ok, "%+v", x)
		require.Equal(t, before, *e)
	}
}

// RC1: with a growing queue the least rate is given, for good.
func TestLeastRate(t *testing.T) {
	e := pid(t, 1, 1, 0, 5)
	e.Estimate(at(0), 1, tick, 100*time.Millisecond)
	for i := int64(1); i < 50; i++ {
		rate, ok := e.Estimate(at(20*i), 1, tick, 100*time.Millisecond)
		require.True(t, ok)
		require.Equal(t, 5.0, rate)
	}
}

// RC1: without a delay the rate follows the speed, up and down.
func TestFollows(t *testing.T) {
	for _, down := range []bool{false, true} {
		e := pid(t, 1, 1, 0, 10)
		for i := int64(0); i < 50; i++ {
			x := i
			if down {
				x = 49 - i
			}
			rate, ok := e.Estimate(at(20*i+1), (x+1)*20, tick, 0)
			require.Equal(t, i > 0, ok)
			if ok {
				require.InDelta(t, float64(x+1)*1000, rate, 1e-6)
			}
		}
	}
}

// RC1: delays hold the rate below the speed.
func TestDelaysHoldBack(t *testing.T) {
	e := pid(t, 1, .01, 0, 10)
	rng := uint64(1)
	for i := int64(0); i < 50; i++ {
		rng = rng*6364136223846793005 + 1442695040888963407
		speed := int64(rng>>60) + 2
		rate, ok := e.Estimate(at(20*i+1), speed*20, tick, tick)
		if i > 0 {
			require.True(t, ok)
			require.Less(t, rate, float64(speed)*1000)
		}
	}
}

// I2 by hand: all three terms.
func TestFormula(t *testing.T) {
	e := pid(t, .5, .2, .1, 1)
	e.Estimate(at(0), 100, 100*time.Millisecond, 0) // 1000/s
	rate, _ := e.Estimate(at(500), 40, 100*time.Millisecond, 40*time.Millisecond)
	// error 600, waiting 0.04·400/0.02 = 800, change 600/0.5 = 1200
	require.InDelta(t, 1000-300-160-120, rate, 1e-9)
	rate, _ = e.Estimate(at(1000), 42, 100*time.Millisecond, 0)
	// error 0, change −1200
	require.InDelta(t, 420+120, rate, 1e-9)
}

func TestBadParameters(t *testing.T) { // RC1
	good := Defaults(time.Second)
	require.NoError(t, good.Validate())
	for name, break_ := range map[string]func(*Config){
		"interval":     func(c *Config) { c.Interval = 0 },
		"proportional": func(c *Config) { c.Proportional = -1 },
		"integral":     func(c *Config) { c.Integral = math.NaN() },
		"derived":      func(c *Config) { c.Derived = math.Inf(1) },
		"least rate":   func(c *Config) { c.MinRate = 0 },
		"the least":    func(c *Config) { c.MinRate = -10 },
	} {
		c := good
		break_(&c)
		_, err := New(c)
		require.ErrorContains(t, err, name)
	}
}

// Whatever is told, the rate is a number of at least the least one.
func TestNeverBelowLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64Range(0, 1e6)
		least := rapid.Float64Range(1e-9, 1e6).Draw(t, "least")
		e := pid(t, f.Draw(t, "p"), f.Draw(t, "i"), f.Draw(t, "d"), least)
		for range 20 {
			rate, ok := e.Estimate(at(rapid.Int64().Draw(t, "end")), rapid.Int64().Draw(t, "records"),
				time.Duration(rapid.Int64().Draw(t, "processing")), time.Duration(rapid.Int64().Draw(t, "scheduling")))
			if ok {
				require.GreaterOrEqual(t, rate, least)
				require.GreaterOrEqual(t, Budget(rate, tick), int64(1))
			}
		}
	})
}

// report 36: a small rate is one record, never all of them.
// report 36: n records divided by the interval are a rate of n records a batch, not of one
// less; what is less by more than rounding is less.
func TestRecords(t *testing.T) {
	for ms := range 60_000 {
		interval := time.Duration(ms+1) * time.Millisecond
		for _, n := range []float64{1, 2, 3, 7, 100, 65_537, 1e9} {
			rate := n / interval.Seconds()
			if int64(Records(rate, interval)) != int64(n) || int64(Records(rate*(1-1e-12), interval)) != int64(n)-1 {
				require.Failf(t, "rounding", "%v records in %v: a rate of %v gives %v", n, interval, rate, Records(rate, interval))
			}
		}
	}
	require.EqualValues(t, 7, Budget(7/0.049, 49*time.Millisecond))
}

func TestBudget(t *testing.T) {
	require.Equal(t, int64(1), Budget(0.001, time.Second))
	require.Equal(t, int64(1), Budget(-5, time.Second))
	require.Equal(t, int64(1), Budget(math.NaN(), time.Second))
	require.Equal(t, int64(250), Budget(100, 2500*time.Millisecond))
	require.Equal(t, int64(math.MaxInt64), Budget(math.Inf(1), time.Second))
}
