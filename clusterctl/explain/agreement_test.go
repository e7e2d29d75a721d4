package explain

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/clusterctl/overview"
	"sigs.k8s.io/cluster-api/clusterctl/ready"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// aside are causes that are not about the rollout of the Cluster's spec, or that stop what has not begun: nothing waits for them now.
var aside = map[Reason]bool{
	Paused: true, ProviderUnavailable: true, MissingObject: true, MissingKind: true, ReferenceFailed: true, ClassInvalid: true, ForeignFinalizer: true, Failed: true,
	CertificatesExpired: true, AddressNotAllocated: true, WorkloadClusterUnreachable: true, RemediationRestricted: true, RemediationTemplate: true,
	RemediationBlocked: true, NodeUnhealthy: true, ControlPlaneUnhealthy: true, ResourcesNotApplied: true, NotReconciled: true,
	InfrastructureNotReady: true, RolloutPaused: true, HeldByOperation: true, OperationInProgress: true, PreflightFailed: true, MachinesNotCreated: true, CertificatesUnavailable: true,
	MachineInfrastructureFailed: true, BootstrapFailed: true, Deleting: true, ExtensionFailed: true, NotReady: true,
}

// TestCommandsAgree compares what describe, explain, get and wait say about the objects of each transcript.
func TestCommandsAgree(t *testing.T) {
	eachTranscript(t, func(t *testing.T, in Input, _ string) {
		report := Explain(in)
		row := overview.Rows(in.Objects)
		waiting, ended := ready.Remaining(in.Cluster, in.Objects)
		if ended == nil && len(waiting) == 0 {
			waiting = ready.Unready(in.Cluster, in.Objects)
		}
		done := ended == nil && len(waiting) == 0
		table := strings.Join(tree.Lines(tree.Build(in.Cluster, in.Objects, tree.Options{Grouping: true, ResourceSets: true}), tree.Style{Now: in.Now}), "\n")
		green := !strings.Contains(table, "False") && !strings.Contains(table, "Unknown") && !strings.Contains(table, "(deleting)")
		activity := ""
		if len(row) > 0 {
			activity = row[0].Activity
		}
		switch {
		case report.Healthy && !done:
			t.Errorf("explain: healthy; wait: %q, %v", waiting, ended)
		case report.Healthy && (activity != "" || !green):
			t.Errorf("explain: healthy; get: %q; describe:\n%s", activity, table)
		case done && activity != "" && !strings.HasSuffix(activity, " is in progress"): // Nothing waits for an operation.
			t.Errorf("wait: done; get: %q", activity)
		case done && !report.Healthy && !aside[report.Causes[0].Reason]:
			t.Errorf("wait: done; explain: %s", described(report))
		case !done && len(row) > 0 && activity == "" && !machinesOnly(waiting):
			t.Errorf("wait: %q; get: nothing", waiting)
		}
	})
}

// machinesOnly: get reads no Machines, so that it does not take longer with their number.
func machinesOnly(waiting []string) bool { return strings.HasPrefix(waiting[0], "Machines ") }

// TestObjectsDisappear runs the commands without each object in turn: it may be deleted while the others are read.
func TestObjectsDisappear(t *testing.T) {
	eachTranscript(t, func(t *testing.T, in Input, _ string) {
		all := in.Objects.All()
		for i, gone := range all {
			in.Objects = tree.NewObjects(slices.Delete(slices.Clone(all), i, i+1)...)
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("without %s %s: %v", gone.GetKind(), gone.GetName(), p)
					}
				}()
				Explain(in)
				overview.Rows(in.Objects)
				if _, ended := ready.Remaining(in.Cluster, in.Objects); ended == nil {
					ready.Unready(in.Cluster, in.Objects)
				}
				if in.Objects.Cluster(in.Cluster) != nil {
					tree.Build(in.Cluster, in.Objects, tree.Options{Grouping: true, ResourceSets: true})
				}
			}()
		}
	})
}
