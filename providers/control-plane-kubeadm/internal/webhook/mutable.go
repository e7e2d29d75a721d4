package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// anything at the end of a path matches all paths below it.
const anything = "*"

// mutable returns the paths of v1beta1 that may change. Everything else is fixed when kubeadm initializes the cluster.
func mutable() []string {
	const config = "spec.kubeadmConfigSpec."
	paths := []string{
		"metadata.*",
		"spec.machineTemplate.infrastructureRef.apiVersion",
		"spec.machineTemplate.infrastructureRef.name", "spec.machineTemplate.infrastructureRef.kind",
		"spec.machineTemplate.nodeDrainTimeout", "spec.machineTemplate.nodeVolumeDetachTimeout", "spec.machineTemplate.nodeDeletionTimeout",
		"spec.machineTemplate.readinessGates", "spec.machineTemplate.taints",
		"spec.replicas", "spec.version", "spec.rolloutAfter",
	}
	for _, p := range []string{
		"spec.machineTemplate.metadata", "spec.remediationStrategy", "spec.rolloutBefore", "spec.rolloutStrategy", "spec.machineNamingStrategy",
	} {
		paths = append(paths, p, p+"."+anything)
	}
	for _, p := range []string{
		"clusterConfiguration.etcd.local.imageRepository", "clusterConfiguration.etcd.local.imageTag", "clusterConfiguration.etcd.local.dataDir",
		"clusterConfiguration.etcd.local.peerCertSANs", "clusterConfiguration.etcd.local.serverCertSANs",
		"clusterConfiguration.etcd.external.endpoints", "clusterConfiguration.etcd.external.caFile",
		"clusterConfiguration.etcd.external.certFile", "clusterConfiguration.etcd.external.keyFile",
		"clusterConfiguration.dns.imageRepository", "clusterConfiguration.dns.imageTag", "clusterConfiguration.imageRepository",
		"initConfiguration.patches", "initConfiguration.patches.directory", "initConfiguration.skipPhases", "initConfiguration.bootstrapTokens",
		"joinConfiguration.patches", "joinConfiguration.patches.directory", "joinConfiguration.skipPhases", "joinConfiguration.caCertPath",
		"clusterConfiguration.certificateValidityPeriodDays", "clusterConfiguration.encryptionAlgorithm",
		"clusterConfiguration.etcd.local.extraEnvs",
		"bootCommands",
		"preKubeadmCommands", "postKubeadmCommands", "files", "verbosity", "users", "format", "mounts", "useExperimentalRetryJoin",
	} {
		paths = append(paths, config+p)
	}
	for _, p := range []string{
		"clusterConfiguration.etcd.local.extraArgs", "clusterConfiguration.featureGates",
		"clusterConfiguration.apiServer", "clusterConfiguration.controllerManager", "clusterConfiguration.scheduler",
		"initConfiguration.nodeRegistration", "initConfiguration.localAPIEndpoint",
		"joinConfiguration.nodeRegistration", "joinConfiguration.controlPlane", "joinConfiguration.discovery",
		"ntp", "ignition", "diskSetup",
	} {
		paths = append(paths, config+p, config+p+"."+anything)
	}
	return paths
}

// mayChange reports whether a path is mutable. Paths are compared by element, because keys of maps may contain dots.
func mayChange(path []string) bool {
	return slices.ContainsFunc(mutable(), func(allowed string) bool {
		elements := strings.Split(allowed, ".")
		if last := len(elements) - 1; elements[last] == anything {
			return len(path) > last && slices.Equal(path[:last], elements[:last])
		}
		return slices.Equal(path, elements)
	})
}

// immutablePaths returns the paths of the values that differ and must not.
//
// They are compared in v1beta1: v1beta2 does not have all of them, and cannot tell an empty section, whose fields may be added, from none.
// What only v1beta2 has may change.
func immutablePaths(ctx context.Context, before, after *controlplanev1.KubeadmControlPlane) ([]*field.Path, error) {
	was, is := &controlplanev1beta1.KubeadmControlPlane{}, &controlplanev1beta1.KubeadmControlPlane{}
	if err := conversion.Shared().Convert(ctx, before, was); err != nil {
		return nil, err
	}
	if err := conversion.Shared().Convert(ctx, after, is); err != nil {
		return nil, err
	}
	changes, err := changedPaths(was, is)
	if err != nil {
		return nil, err
	}
	var all []*field.Path
	for _, path := range changes {
		if mayChange(path) {
			continue
		}
		if reference := slices.Index(path, "infrastructureRef"); reference > 0 {
			path = slices.Insert(path, reference, "spec") // There it is in v1beta2.
		}
		all = append(all, field.NewPath(path[0], path[1:]...))
	}
	return all, nil
}

// changedPaths returns the sorted paths of all values that differ, except for status.
func changedPaths(before, after *controlplanev1beta1.KubeadmControlPlane) ([][]string, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	raw, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.Unmarshal(raw, &patch); err != nil {
		return nil, err
	}
	delete(patch, "status")
	var all [][]string
	leaves(patch, nil, &all)
	slices.SortFunc(all, slices.Compare[[]string])
	return all, nil
}

// leaves appends the paths of all values that are not objects, and of empty objects.
func leaves(value any, path []string, all *[][]string) {
	object, ok := value.(map[string]any)
	if !ok || len(object) == 0 {
		if len(path) > 0 {
			*all = append(*all, path)
		}
		return
	}
	for key, child := range object {
		leaves(child, append(slices.Clone(path), key), all)
	}
}
