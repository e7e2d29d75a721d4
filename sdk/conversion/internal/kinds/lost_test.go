package kinds

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// lost adds the paths of the fields of an object that another one does not have, or has otherwise. What the other versions cannot tell
// from unset is left out.
func lost(paths map[string]bool, own, other any, path string) {
	switch typed := own.(type) {
	case object:
		otherObject, _ := other.(object)
		for name, value := range typed {
			if name == "labels" || name == "annotations" || name == "attributes" || name == "failureDomains" || name == "extraArgs" {
				if !reflect.DeepEqual(value, otherObject[name]) {
					paths[path+"."+name] = true
				}
				continue
			}
			lost(paths, value, otherObject[name], strings.TrimPrefix(path+"."+name, "."))
		}
	case []any:
		otherList, _ := other.([]any)
		for i, item := range typed {
			var otherItem any
			if i < len(otherList) {
				otherItem = otherList[i]
			}
			lost(paths, item, otherItem, path+"[]")
		}
	case nil:
	default:
		if own != false && own != int64(0) && own != "" && !reflect.DeepEqual(own, other) {
			paths[path] = true
		}
	}
}

// lostBy adds the names of the fields of random objects that are lost without annotations.
func lostBy(t *testing.T, k kindTest, hubs bool, names map[string]bool) {
	t.Helper()
	paths := map[string]bool{}
	for range 20 {
		first, second, from, parts := k.convert[0], k.convert[1], k.spoke(t), []string{"spec"}
		if hubs {
			first, second, from, parts = k.convert[1], k.convert[0], k.hub(t), []string{"spec", "status"}
		}
		over := first(t, from)
		delete(lossless.At(over, "metadata"), "annotations")
		back := second(t, over)
		for _, part := range parts {
			lost(paths, from[part], back[part], part)
		}
	}
	for path := range paths {
		if before, _, ok := strings.Cut(path, ".capacity."); ok {
			path = before + ".capacity"
		}
		names[path[strings.LastIndex(path, ".")+1:]] = true
	}
}

// Only these fields need annotations: a missing rule would be hidden by them.
func TestFieldsThatNeedAnnotations(t *testing.T) {
	hub, spoke := map[string]bool{}, map[string]bool{}
	for name, kind := range byName(inMemory) {
		k := kindTest{kind: kind, convert: converters()[name], filler: random(5)}
		lostBy(t, k, true, hub)
		lostBy(t, k, false, spoke)
	}
	wantHub := []string{
		"capacity", // of DockerMachineTemplates
		"controlPlaneComponentHealthCheckSeconds", // if join differs from init
		"discoverySeconds", "etcdAPICallSeconds",  // timeouts that v1beta1 does not have
		"extraArgs",                     // the order, and several flags with one name
		"failureDomain",                 // of a Machine's status
		"failureDomains",                // the order, and false
		"kubeletHealthCheckSeconds",     //
		"kubernetesAPICallSeconds",      //
		"lastTransitionTime", "message", // conditions of DockerMachinePools
		"minReadySeconds", // of a Machine
		"name",            // of flags, whose order is another one
		"observedGeneration",
		"provisioned",      // of DockerMachinePools, if it differs from ready
		"reason", "status", //
		"tlsBootstrapSeconds", // of init
		"type",                //
		"value",               //
	}
	wantSpoke := []string{
		"apiVersion", "bootstrapped", "clusterName", "definitionFrom", "dnsDomain", "fieldPath",
		"kubernetesVersion", "minHealthyPeriod", "namespace", "nodeDeletionTimeout", "nodeDrainTimeout", "nodeStartupTimeout",
		"nodeVolumeDetachTimeout", "podSubnet", "progressDeadlineSeconds", "resourceVersion", "retryPeriod", "revisionHistoryLimit",
		"rolloutAfter", "serviceSubnet", "timeout", "timeoutForControlPlane", "ttl", "uid", "useExperimentalRetryJoin",
	}
	for _, list := range []string{ // with empty texts
		"bootCommands", "caCertHashes", "certSANs", "endpoints", "extraOpts", "groups", "ignorePreflightErrors", "peerCertSANs",
		"postKubeadmCommands", "preKubeadmCommands", "serverCertSANs", "servers", "skipPhases", "sshAuthorizedKeys", "usages",
	} {
		wantSpoke = append(wantSpoke, list+"[]")
	}
	slices.Sort(wantSpoke)
	if diff := cmp.Diff(wantHub, slices.Sorted(maps.Keys(hub))); diff != "" {
		t.Errorf("hub (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantSpoke, slices.Sorted(maps.Keys(spoke))); diff != "" {
		t.Errorf("spoke (-want +got):\n%s", diff)
	}
}
