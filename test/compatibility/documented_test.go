package compatibility

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sheet returns a part of a page of the reference data, from one heading to another.
func sheet(t *testing.T, file, from, to string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(facts(t, ""), "..", file))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(content), "\n## "+from)
	if !found {
		t.Fatalf("%s has no heading %q", file, from)
	}
	text, _, _ = strings.Cut(text, "\n## "+to)
	return text
}

// word matches a condition type or a reason.
var word = regexp.MustCompile(`\b[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+\b|\b(?:Resized|Available|Deleting|Deleted|Draining|Discovered|Bootstrapping)\b`)

// TestReasonsAreComplete checks that every documented condition, reason and event is pinned or excused.
func TestReasonsAreComplete(t *testing.T) {
	used := literals(t)
	pinned := map[string]bool{}
	for _, value := range reasons() {
		pinned[value] = true
	}
	text := sheet(t, "conditions.md", "2. ", "3. ") + sheet(t, "conditions.md", "5. ", "7. ")
	found := map[string]bool{}
	for _, value := range word.FindAllString(text, -1) {
		found[value] = true
	}
	if len(found) < 150 {
		t.Fatalf("only %d words are found: has the format changed?", len(found))
	}
	for _, value := range slices.Sorted(maps.Keys(found)) {
		reason, excused := notStated()[value]
		switch {
		case notReasons()[value]:
		case !pinned[value] && !excused:
			t.Errorf("%s is documented, but not pinned", value)
		case pinned[value] && excused:
			t.Errorf("%s is pinned, but listed in notStated (%s)", value, reason)
		case excused && used[value]:
			t.Errorf("%s is listed in notStated (%s), but is in the code", value, reason)
		}
	}
	for value := range notStated() {
		if !found[value] {
			t.Errorf("%s is listed in notStated, but not documented", value)
		}
	}
}

// notReasons returns words of the same pages that are kinds, fields of Nodes, and names for readers.
func notReasons() map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(`ClusterClass ClusterResourceSet ConfigMap DockerCluster DockerMachine DockerMachinePool
		ExtensionConfig InMemory InMemoryMachine KubeadmConfig KubeadmControlPlane MachineDeployment MachineHealthCheck MachinePool
		MachineSet AddSourceRef DiskPressure MemoryPressure OnDelete ProviderID
		EtcdMemberInspectionFailed InspectionFailed`) { // a constant's name, and the end of several reasons
		out[name] = true
	}
	return out
}

// notStated returns documented conditions, reasons and events that no controller reports, and why.
func notStated() map[string]string {
	out := map[string]string{}
	for reason, values := range map[string]string{
		"a terminal failure, which providers report and controllers copy": `InsufficientResources UnsupportedChange CreateError
			UpdateError DeleteError JoinClusterTimeoutError`,
	} {
		for value := range strings.FieldsSeq(values) {
			out[value] = reason
		}
	}
	return out
}

// TestFinalizersAndTaintsAreComplete checks that every documented finalizer and taint is pinned or excused.
func TestFinalizersAndTaintsAreComplete(t *testing.T) {
	pinned := map[string]bool{}
	for _, value := range wellKnown() {
		pinned[value] = true
	}
	later := map[string]string{}
	names := regexp.MustCompile(`[a-z.]+x-k8s\.io(?:/[a-z-]+)?`)
	found := names.FindAllString(sheet(t, "labels-annotations-finalizers.md", "3. ", "5. "), -1)
	if len(found) < 10 {
		t.Fatalf("only %q are found: has the format changed?", found)
	}
	for _, value := range found {
		if _, excused := later[value]; pinned[value] == excused {
			t.Errorf("%s: pinned %t, excused %t", value, pinned[value], excused)
		}
	}
}

// TestMetricsAreComplete checks that every documented metric of the product is served. test/permission checks the
// names of served metrics, hack/statemetrics those of kube-state-metrics.
func TestMetricsAreComplete(t *testing.T) {
	served := map[string]bool{
		"capi_runtime_sdk_requests_total": true, "capi_runtime_sdk_request_duration_seconds": true,
		"capim_apiserver_request_total": true, "capim_apiserver_request_duration_seconds": true, "capim_etcd_request_duration_seconds": true,
	}
	text := sheet(t, "inmemory.md", "4. ", "5. ") + sheet(t, "runtime-sdk.md", "7. ", "8. ") +
		strings.Split(sheet(t, "conditions.md", "7. ", "8. "), "kube-state-metrics")[0]
	found := map[string]bool{}
	for _, name := range regexp.MustCompile(`capim?_[a-z_]+[a-z]`).FindAllString(text, -1) {
		found[name] = true
	}
	used := literals(t)
	for name := range found {
		if !served[name] || !used[name] {
			t.Errorf("%s: served %t, in the code %t", name, served[name], used[name])
		}
	}
	if len(found) != len(served) {
		t.Errorf("found %v", found)
	}
}
