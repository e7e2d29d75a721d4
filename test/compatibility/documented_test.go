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

// sheet reads a part of a page of the facts, from one heading to another.
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

// word is a condition's type, or a reason, as it is written.
var word = regexp.MustCompile(`\b[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+\b|\b(?:Resized|Available|Deleting|Deleted|Draining|Discovered|Bootstrapping)\b`)

// TestReasonsAreComplete finds every condition, reason and event that the facts list.
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
			t.Errorf("%s is documented and not pinned", value)
		case pinned[value] && excused:
			t.Errorf("%s is pinned, and listed as not stated (%s)", value, reason)
		case excused && used[value]:
			t.Errorf("%s is listed as not stated (%s), and code has it", value, reason)
		}
	}
	for value := range notStated() {
		if !found[value] {
			t.Errorf("%s is listed as not stated, and not documented", value)
		}
	}
}

// notReasons are words in the same pages that are kinds, fields of Nodes, and names for readers.
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

// notStated are documented conditions, reasons and events that nothing here states, with the reason.
func notStated() map[string]string {
	out := map[string]string{}
	for reason, values := range map[string]string{
		"MachineHealthChecks have no controller yet": `HasRemediateMachineAnnotation MachineHasFailure NodeStartupTimeout UnhealthyNode
			DetectedUnhealthy MachineMarkedUnhealthy RemediationRestricted RemediationAllowed TooManyUnhealthy
			ExternalRemediationTemplateAvailable ExternalRemediationTemplateNotFound ExternalRemediationRequestAvailable
			ExternalRemediationRequestCreationFailed`,
		"MachinePools have no controller yet":        `IncorrectExternalRef WaitingForReplicasReady SuccessfulSetNodeRefs FailedSetNodeRef ReplicasReady`,
		"ClusterResourceSets have no controller yet": `ApplyFailed ClusterMatchFailed RemoteClusterClientFailed ResourcesApplied RetrievingResourceFailed WrongSecretType`,
		"runtime hooks are not called yet":           `LifecycleHookBlocking Discovered DiscoveryFailed`,
		"the Docker provider does not exist yet": `BootstrapExecSucceeded BootstrapFailed Bootstrapping ContainerDeleted ContainerProvisioned
			ContainerProvisioningFailed LoadBalancerAvailable LoadBalancerProvisioningFailed`,
		"a terminal failure that providers report and that is copied, not stated": `InsufficientResources UnsupportedChange CreateError
			UpdateError DeleteError JoinClusterTimeoutError`,
	} {
		for value := range strings.FieldsSeq(values) {
			out[value] = reason
		}
	}
	return out
}

// TestFinalizersAndTaintsAreComplete finds every finalizer and taint of the facts.
func TestFinalizersAndTaintsAreComplete(t *testing.T) {
	pinned := map[string]bool{}
	for _, value := range wellKnown() {
		pinned[value] = true
	}
	later := map[string]string{
		"machinepool.cluster.x-k8s.io":                      "MachinePools have no controller yet",
		"addons.cluster.x-k8s.io":                           "ClusterResourceSets have no controller yet",
		"dockermachinepool.infrastructure.cluster.x-k8s.io": "the Docker provider does not exist yet",
	}
	names := regexp.MustCompile(`[a-z.]+x-k8s\.io(?:/[a-z-]+)?`)
	found := names.FindAllString(sheet(t, "labels-annotations-finalizers.md", "3. ", "5. "), -1)
	if len(found) < 10 {
		t.Fatalf("only %q are found: has the format changed?", found)
	}
	for _, value := range found {
		if _, excused := later[value]; pinned[value] == excused {
			t.Errorf("%s is pinned: %t, excused: %t", value, pinned[value], excused)
		}
	}
}

// TestMetricsAreComplete finds every metric of the product's own that the facts list. What managers serve is held against
// the names by test/permission, what kube-state-metrics makes of objects by hack/statemetrics.
func TestMetricsAreComplete(t *testing.T) {
	served := map[string]bool{
		"capim_apiserver_request_total": true, "capim_apiserver_request_duration_seconds": true, "capim_etcd_request_duration_seconds": true,
	}
	later := map[string]string{
		"capi_runtime_sdk_requests_total":           "runtime hooks are not called yet",
		"capi_runtime_sdk_request_duration_seconds": "runtime hooks are not called yet",
	}
	text := sheet(t, "inmemory.md", "4. ", "5. ") + sheet(t, "runtime-sdk.md", "7. ", "8. ") +
		strings.Split(sheet(t, "conditions.md", "7. ", "8. "), "kube-state-metrics")[0]
	found := map[string]bool{}
	for _, name := range regexp.MustCompile(`capim?_[a-z_]+[a-z]`).FindAllString(text, -1) {
		found[name] = true
	}
	used := literals(t)
	for name := range found {
		if _, excused := later[name]; served[name] == excused {
			t.Errorf("%s is served: %t, excused: %t", name, served[name], excused)
		}
		if served[name] != used[name] {
			t.Errorf("%s is served: %t, in the code: %t", name, served[name], used[name])
		}
	}
	if len(found) != len(served)+len(later) {
		t.Errorf("found %v", found)
	}
}
