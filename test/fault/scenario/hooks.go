package scenario

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// hooked returns the scenarios of Clusters with a runtime extension: its lifecycle hooks block until they were called twice.
func hooked() []Scenario {
	s := deployed(1, 1)
	create := creation("hooked-create", s)
	create.Prepare = CallHooks(extension.BeforeClusterCreate)
	create.Done = append(create.Done, Called(extension.BeforeClusterCreate, extension.AfterControlPlaneInitialized), nonePending)

	upgrade := rollout("hooked-upgrade", s, Upgrade, 1, 1, Upgraded)
	upgrade.Prepare = CallHooks(extension.BeforeClusterUpgrade, extension.AfterControlPlaneUpgrade)
	upgrade.Done = append(upgrade.Done,
		Called(extension.BeforeClusterUpgrade, extension.AfterControlPlaneUpgrade, extension.AfterClusterUpgrade), nonePending)

	deletes := deletion("hooked-delete", s)
	deletes.Prepare = CallHooks(extension.BeforeClusterDelete)
	deletes.Done = append(deletes.Done, Called(extension.BeforeClusterDelete))

	all := []Scenario{create, upgrade, deletes}
	for i := range all {
		all[i].Hooks, all[i].Provider = true, ReleaseHooks
	}
	return all
}

// CallHooks makes managers call the extension for the Clusters of the namespace. These hooks block until ReleaseHooks.
func CallHooks(blocking ...string) Change {
	return func(ctx context.Context, t Target) error {
		if err := ignoreExists(t.Client.Create(ctx, extension.NewRecord(t.Namespace, blocking...))); err != nil {
			return err
		}
		namespace := object("v1", "Namespace", "", t.Namespace)
		namespace.SetLabels(map[string]string{extension.CalledLabel: "true"})
		return t.Client.Patch(ctx, namespace, client.Merge)
	}
}

// callsUntilRelease is how often a blocking hook is called before it is released. The second call is one second after the first one: if a
// manager does not wait for the answer, the rules notice.
const callsUntilRelease = 2

// ReleaseHooks releases the hooks that were called often enough.
func ReleaseHooks(ctx context.Context, t Target, now history.State) error {
	record := Record(now)
	for _, hook := range []string{
		extension.BeforeClusterCreate, extension.BeforeClusterUpgrade, extension.AfterControlPlaneUpgrade, extension.BeforeClusterDelete,
	} {
		if extension.Blocks(record, hook) && extension.Calls(record, hook) >= callsUntilRelease {
			if err := extension.Release(ctx, t.Client, t.Namespace, hook); err != nil {
				return err
			}
		}
	}
	return nil
}

// Record returns the extension's record of calls, nil if the namespace has none.
func Record(now history.State) *unstructured.Unstructured {
	return now[history.Key{Kind: "ConfigMap", Name: extension.Record}]
}

// Called is true when all of these hooks were called.
func Called(hooks ...string) Condition {
	return func(now history.State) error {
		for _, hook := range hooks {
			if extension.Calls(Record(now), hook) == 0 {
				return fmt.Errorf("hook %s was not called", hook)
			}
		}
		return nil
	}
}

// nonePending is true when no hook of the Cluster is pending.
func nonePending(now history.State) error {
	if c := now[history.Key{Kind: "Cluster", Name: ClusterName}]; c != nil && c.GetAnnotations()[runtimev1.PendingHooksAnnotation] != "" {
		return fmt.Errorf("hooks %s are pending", c.GetAnnotations()[runtimev1.PendingHooksAnnotation])
	}
	return nil
}

// Initialized is true when the control plane is initialized.
func Initialized(now history.State) error {
	c := now[history.Key{Kind: "Cluster", Name: ClusterName}]
	if c == nil || Status(c, "ControlPlaneInitialized") != "True" {
		return errors.New("the control plane is not initialized")
	}
	return nil
}

// ControlPlaneUpgraded is true when the control plane reports the second version.
func ControlPlaneUpgraded(now history.State) error {
	for _, o := range now.Of("KubeadmControlPlane") {
		if v, _, _ := unstructured.NestedString(o.Object, "status", "version"); v != secondVersion {
			return fmt.Errorf("the version of %s %s is %s", o.GetKind(), o.GetName(), v)
		}
	}
	return nil
}

// HasNewVersion reports whether the spec of a Machine, or of one of its owners, has the second version.
func HasNewVersion(o *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec", "version"}, {"spec", "template", "spec", "version"}} {
		if v, _, _ := unstructured.NestedString(o.Object, path...); v == secondVersion {
			return true
		}
	}
	return false
}
