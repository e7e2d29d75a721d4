package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

func scopeOf(with ...func(*clusterv1.Cluster)) *scope {
	return &scope{Cluster: build.Cluster(with...), family: &family{}, now: now}
}

func deleting(c *clusterv1.Cluster) {
	at := metav1.NewTime(now)
	c.DeletionTimestamp = &at
}

func initialized(c *clusterv1.Cluster) {
	condition.Set(c, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
}

func ready(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }

// already makes conditions those of an earlier reconcile.
func already(conditions ...metav1.Condition) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.SetConditions(conditions) }
}

func existing(f fields) reference.Found {
	return reference.FoundOf(contract.Object{Unstructured: infraCluster(f)}, true, nil)
}

// reading returns a status with these conditions.
func reading(conditions []any) fields { return fields{"status": fields{"conditions": conditions}} }

func TestInfrastructureReport(t *testing.T) {
	const of = "InfrastructureReady"
	gone := reference.FoundOf(contract.Object{}, false, nil)
	for _, tt := range []struct {
		reason  string
		cluster []func(*clusterv1.Cluster)
		object  reference.Found
		want    metav1.Condition
	}{
		{"none is needed", nil, reference.Found{}, report.True(of, "Provisioned", "")},
		{"it does not exist yet", []func(*clusterv1.Cluster){withInfra}, gone, report.False(of, "ObjectDoesNotExist", "GenericCluster does not exist")},
		{"it existed", []func(*clusterv1.Cluster){withInfra, ready}, gone,
			report.False(of, "ObjectDeleted", "GenericCluster has been deleted while the cluster still exists")},
		{"it is deleted with the Cluster", []func(*clusterv1.Cluster){withInfra, ready, deleting}, gone,
			report.False(of, "ObjectDeleted", "GenericCluster has been deleted")},
		{"it cannot be read", []func(*clusterv1.Cluster){withInfra}, reference.FoundOf(contract.Object{}, false, errors.New("https://internal")),
			report.Unknown(of, "InternalError", "Please check controller logs for errors")},
		{"the reference is invalid", []func(*clusterv1.Cluster){withInfra},
			reference.FoundOf(contract.Object{}, false, &step.Error{Reason: "x", Err: errors.New("it belongs to another Cluster")}),
			report.Unknown(of, "InternalError", "it belongs to another Cluster")},
		{"it has no condition and is not ready", []func(*clusterv1.Cluster){withInfra}, existing(nil),
			report.False(of, "NotReady", "GenericCluster status.ready is false")},
		{"it has no condition and is ready", []func(*clusterv1.Cluster){withInfra}, existing(fields{"status": fields{"ready": true}}), report.True(of, "Ready", "")},
		{"its condition is mirrored", []func(*clusterv1.Cluster){withInfra},
			existing(reading([]any{map[string]any{"type": "Ready", "status": "False", "reason": "NoQuota", "message": "1 of 2"}})),
			report.False(of, "NoQuota", "1 of 2")},
		{"True without reason", []func(*clusterv1.Cluster){withInfra},
			existing(reading([]any{map[string]any{"type": "Ready", "status": "True"}})), report.True(of, "Ready", "")},
		{"what no API server accepts", []func(*clusterv1.Cluster){withInfra},
			existing(reading([]any{map[string]any{"type": "Ready", "status": "Maybe", "reason": "no idea"}})),
			report.Unknown(of, "InvalidConditionReported", `condition Ready of GenericCluster has status "Maybe" and reason "no idea", which are invalid`)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := scopeOf(tt.cluster...)
			s.infrastructure = tt.object
			if diff := cmp.Diff(tt.want, s.infrastructureReport()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestControlPlaneReports(t *testing.T) {
	gone := reference.FoundOf(contract.Object{}, false, nil)
	for _, tt := range []struct {
		reason                 string
		cluster                []func(*clusterv1.Cluster)
		object                 reference.Found
		available, initialized metav1.Condition
	}{
		{"Machines without control plane object", nil, reference.Found{}, report.None("ControlPlaneAvailable"),
			report.False("ControlPlaneInitialized", "NotInitialized", "Waiting for the first control plane machine to have status.nodeRef set")},
		{"it does not exist yet", []func(*clusterv1.Cluster){withPlane}, gone,
			report.False("ControlPlaneAvailable", "ObjectDoesNotExist", "GenericControlPlane does not exist"),
			report.Unknown("ControlPlaneInitialized", "ObjectDoesNotExist", "GenericControlPlane does not exist")},
		{"it existed: initialized stays", []func(*clusterv1.Cluster){withPlane, initialized}, gone,
			report.False("ControlPlaneAvailable", "ObjectDeleted", "GenericControlPlane has been deleted while the cluster still exists"),
			report.True("ControlPlaneInitialized", "Initialized", "")},
		{"it is created", []func(*clusterv1.Cluster){withPlane}, existing(nil),
			report.False("ControlPlaneAvailable", "NotAvailable", "GenericControlPlane status.initialized is false"),
			report.False("ControlPlaneInitialized", "NotInitialized", "Control plane not yet initialized")},
		{"it is initialized", []func(*clusterv1.Cluster){withPlane, initialized}, existing(fields{"status": fields{"initialized": true}}),
			report.True("ControlPlaneAvailable", "Available", ""), report.True("ControlPlaneInitialized", "Initialized", "")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := scopeOf(tt.cluster...)
			s.plane = tt.object
			if diff := cmp.Diff([]metav1.Condition{tt.available, tt.initialized},
				[]metav1.Condition{s.controlPlaneReport(), s.initializedReport()}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestProbeReport(t *testing.T) {
	const of = "RemoteConnectionProbe"
	never := report.False(of, "ProbeFailed", "Remote connection not established yet")
	up := report.True(of, "ProbeSucceeded", "")
	down := report.False(of, "ProbeFailed", "Remote connection probe failed, probe last succeeded at 2024-01-02T03:04:05Z")
	since := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		reason     string
		before     []metav1.Condition
		connection *connection
		after      time.Duration
		want       metav1.Condition
	}{
		{"none is expected yet", nil, nil, 0, never},
		{"the first one", nil, &connection{up: true}, 0, up},
		{"it is established", []metav1.Condition{never}, &connection{up: true}, 0, up},
		{"it is not established yet", []metav1.Condition{never}, &connection{since: since}, time.Hour, never},
		{"it was lost moments ago", []metav1.Condition{up}, &connection{since: since}, 49 * time.Second, up},
		{"it is lost", []metav1.Condition{up}, &connection{since: since}, 50 * time.Second, down},
		{"it stays lost, also after a restart", []metav1.Condition{down}, &connection{since: since.Add(time.Hour)}, 2 * time.Hour, down},
		{"in deletion, the last state counts", []metav1.Condition{up}, nil, 0, up},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := scopeOf(already(tt.before...))
			s.connection, s.now = tt.connection, since.Add(tt.after)
			if diff := cmp.Diff(tt.want, s.probeReport()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAvailable(t *testing.T) {
	good := []metav1.Condition{
		report.False("Deleting", "NotDeleting", ""), report.True("RemoteConnectionProbe", "ProbeSucceeded", ""),
		report.True("InfrastructureReady", "Ready", ""), report.None("ControlPlaneAvailable"), report.True("WorkersAvailable", "NoWorkers", ""),
	}
	with := func(c metav1.Condition) []metav1.Condition {
		var all []metav1.Condition
		for _, other := range good {
			if other.Type == c.Type {
				other = c
			}
			all = append(all, other)
		}
		return all
	}
	const of = "Available"
	for _, tt := range []struct {
		reason  string
		now     []metav1.Condition
		cluster []func(*clusterv1.Cluster)
		gates   []clusterv1.ClusterAvailabilityGate
		want    metav1.Condition
	}{
		{"all is well", good, nil, nil, report.True(of, of, "")},
		{"workers are not available", with(report.False("WorkersAvailable", "NotAvailable", "* MachineDeployment a: too few")), nil, nil,
			report.False(of, "NotAvailable", "* WorkersAvailable:\n  * MachineDeployment a: too few")},
		{"a topology that is not reported", good, []func(*clusterv1.Cluster){withTopology}, nil,
			report.Unknown(of, "AvailableUnknown", "* TopologyReconciled: Condition TopologyReconciled not yet reported")},
		{"an upgrade is no issue", good, []func(*clusterv1.Cluster){withTopology, already(report.False("TopologyReconciled", "ClusterUpgrading", "to v2"))}, nil,
			report.True(of, of, "* TopologyReconciled: to v2")},
		{"a failure is one", good, []func(*clusterv1.Cluster){withTopology, already(report.False("TopologyReconciled", "ReconcileFailed", "no template"))}, nil,
			report.False(of, "NotAvailable", "* TopologyReconciled: no template")},
		{"what is deleted is expected to be gone", with(report.False("InfrastructureReady", "ObjectDeleted", "it has been deleted")),
			[]func(*clusterv1.Cluster){deleting}, nil, report.True(of, of, "* InfrastructureReady: it has been deleted")},
		{"gates", good, []func(*clusterv1.Cluster){already(report.True("Backup", "Done", ""), report.True("Frozen", "Frozen", "by audit"))},
			[]clusterv1.ClusterAvailabilityGate{{ConditionType: "Backup"}, {ConditionType: "Frozen", Polarity: clusterv1.NegativePolarityCondition}, {ConditionType: "Absent"}},
			report.False(of, "NotAvailable", "* Frozen: by audit\n* Absent: Condition Absent not yet reported")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := scopeOf(tt.cluster...)
			s.family.gates = tt.gates
			if diff := cmp.Diff(tt.want, s.available(tt.now)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
