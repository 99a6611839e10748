package main

// table names every break in the source and the test that must catch it; the oracle alone does not count, for it cannot
// see a missing undo.
var table = []Break{
	{Name: "clone-key", Package: "codec", Test: "TestKeyCloneOwnsItsStrings"},
	{Name: "key-order", Package: "codec", Test: "TestKeyLaws"},
	{Name: "map-order", Package: "codec", Test: "TestMapsAreSorted"},

	{Name: "clock-back-not-held", Package: "internal/core", Test: "TestGolden/clock.txt"},
	{Name: "epochs-overlap", Package: "internal/core", Test: "TestProperties"},
	{Name: "skip-queue-limit", Package: "internal/core", Test: "TestGolden/queue.txt"},
	{Name: "stop-starts-next", Package: "internal/core", Test: "TestGolden/stop.txt"},

	{Name: "guard-leaks-rows", Package: "rdd", Test: "TestGuardedModeAtEveryEdge"},
	{Name: "kept-not-kept", Package: "rdd", Test: "TestKeptIsComputedOnce"},
	{Name: "random-group-order", Package: "rdd", Test: "TestOrderOfReduceByKey"},
	{Name: "released-readable", Package: "rdd", Test: "TestReleasedKeptRows"},
	{Name: "shuffle-join-order", Package: "rdd", Test: "TestOrderOfShuffle"},

	{Name: "expiry-order", Package: "staterdd", Test: "TestOutputOrder"},
	{Name: "insert-before-update", Package: "staterdd", Test: "TestReadersInsertNothing"},
	{Name: "keep-after-timeout", Package: "staterdd", Test: "TestUpdateRule/RU11"},
	{Name: "no-private-copy", Package: "staterdd", Test: "TestMapsChangedInPlace"},
	{Name: "no-touch", Package: "staterdd", Test: "TestUpdateRule/RU12"},
	{Name: "timeout-before-data", Package: "staterdd", Test: "TestDataBeforeTimeout"},
	{Name: "timeout-le", Package: "staterdd", Test: "TestTimeoutsOfAQuietStream"},

	{Name: "bucket-too-late", Package: "timeout", Test: "TestModel/idle"},
	{Name: "no-earlier-hint", Package: "timeout", Test: "TestDeadlineEarlierThanItsHint"},
	{Name: "pass-mutates-early", Package: "timeout", Test: "TestPassChangesNothingBeforeCommit"},
	{Name: "watermark-goes-back", Package: "timeout", Test: "TestWatermarkProperties"},
}
