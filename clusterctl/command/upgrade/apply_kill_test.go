package upgrade

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// everyVariable is the environment variable that, if not empty, makes TestKilled interrupt an upgrade after every request, in
// every way.
const everyVariable = "CAPI_UPGRADE_EVERY_REQUEST"

// stride is the distance of the requests after which TestKilled interrupts otherwise.
const stride = 67

func all() *testenv.Wire { return &testenv.Wire{Limit: -1} }

// untilCutover is killed when the new controllers are available.
func untilCutover() *testenv.Wire {
	return &testenv.Wire{Limit: -1, Until: "PUT /api/v1/namespaces/up-system/services/up-webhook"}
}

// way is one way in which an upgrade is interrupted and continued.
type way struct {
	// lose performs the last request, but loses its response.
	lose bool
	// gone removes the new version from the repository before the next run.
	gone bool
}

// TestKilled interrupts upgrades, in turns to the new and to the old version, after their first request, their second and so on,
// until one is no longer interrupted. Each is continued by another run, which completes it; if the version has disappeared
// from the repository meanwhile, it rolls back.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	ends := w.ends()
	ways, step := []way{{}, {lose: true, gone: true}, {gone: true}, {lose: true}}, stride
	every := os.Getenv(everyVariable) != ""
	if every {
		step = 1
	}
	// Interrupted runs are in turns of both directions; only the one to the new version can lose it.
	for n, turn, longest := first(every), 0, 0; ; n += step {
		chosen := ways
		if !every {
			chosen = ways[turn%len(ways):][:1]
		}
		ended := true
		for _, how := range chosen {
			turn++
			ended = w.killed(n, how, ends, &longest) && ended
		}
		if ended {
			t.Logf("an upgrade has %d requests", longest)
			return
		}
	}
}

// first is the request after which the first upgrade is interrupted: 1, or the number in the variable.
func first(every bool) int {
	if n, err := strconv.Atoi(os.Getenv(everyVariable)); every && err == nil {
		return n
	}
	return 1
}

// ends returns the states of undisturbed upgrades, and ends with the old version.
func (w *world) ends() map[string]map[string]string {
	w.Helper()
	ends := map[string]map[string]string{}
	for _, version := range []string{newVersion, oldVersion} {
		out, err := w.apply(all(), w.repository, version)
		if err != nil {
			w.Fatalf("to %s: %v\n%s", version, err, out)
		}
		if strings.Contains(out, "secret-") {
			w.Errorf("the output has a secret: %s", out)
		}
		ends[version] = w.state()
	}
	return ends
}

// killed interrupts an upgrade to the new version after n requests, and lets other runs end it. It returns whether the upgrade
// ended before. Afterwards the old version is installed.
func (w *world) killed(n int, how way, ends map[string]map[string]string, longest *int) bool {
	w.Helper()
	w.storedVersions("v1alpha1", "v1")
	wires := &testenv.Wire{Limit: n, Lose: how.lose}
	_, err := w.apply(wires, w.repository, newVersion)
	*longest = max(*longest, min(len(wires.Log()), n))
	if err == nil {
		w.check("without interruption", ends[newVersion])
		w.back(all(), ends)
		return len(wires.Log()) <= n
	}
	when := "killed after " + wires.Last()
	repository, end := w.repository, ends[newVersion]
	const entry = "Provider cluster-api"
	completed := w.state()[entry] == ends[newVersion][entry] // only its journal remains
	if how.gone {
		repository = w.gone
	}
	if how.gone && !completed {
		end = ends[oldVersion]
	}
	out, err := w.apply(all(), repository, newVersion)
	if how.gone != (err != nil) || how.gone && !strings.Contains(err.Error(), "has no version "+newVersion) {
		w.Fatalf("%s (%+v): the next run: %v\n%s", when, how, err, out)
	}
	w.check(fmt.Sprintf("%s, request %d (%+v), continued with %v\n%s", when, n, how, err, out), end)
	switch {
	case !how.gone:
		// And the way back is interrupted, too.
		w.back(&testenv.Wire{Limit: n, Lose: how.lose}, ends)
	case completed:
		w.back(all(), ends)
	}
	return false
}

// back upgrades to the old version, interrupted and continued.
func (w *world) back(n *testenv.Wire, ends map[string]map[string]string) {
	w.Helper()
	_, err := w.apply(n, w.repository, oldVersion)
	if err != nil && n.Limit >= 0 {
		_, err = w.apply(all(), w.repository, oldVersion)
	}
	if err != nil {
		w.Fatalf("back to the old version, killed after %d requests: %v", n.Limit, err)
	}
	w.check("back to the old version", ends[oldVersion])
}

func (w *world) check(when string, want map[string]string) {
	w.Helper()
	if diff := cmp.Diff(want, w.state()); diff != "" {
		w.Fatalf("%s: -want +got:\n%s", when, diff)
	}
}
