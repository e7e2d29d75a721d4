package tree

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// report adds a condition of v1beta2 that has been so for some time.
func (o object) report(kind, status, reason, message string, since time.Duration) object {
	old, _ := o.Object["status"].(map[string]any)
	reports, _ := old["v1beta2"].(map[string]any)
	list, _ := reports["conditions"].([]any)
	c := map[string]any{
		"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": testTime.Add(-since).Format(time.RFC3339),
	}
	return o.set(append(list, c), "status", "v1beta2", "conditions")
}

// counted sets the desired and current number of Machines, and how many are available, ready and up to date.
func (o object) counted(desired, current, available, ready, upToDate int64) object {
	return o.set(desired, "spec", "replicas").set(current, "status", "replicas").set(available, "status", "v1beta2", "availableReplicas").
		set(ready, "status", "v1beta2", "readyReplicas").set(upToDate, "status", "v1beta2", "upToDateReplicas")
}

// reportedMachine returns a Machine that is ready, available and up to date for some time.
func reportedMachine(name, ownerKind, owner string, since time.Duration) object {
	return newObject(coreVersion, "Machine", name).owned(ownerKind, owner).
		report("Available", "True", "Available", "", since).report("Ready", "True", "Ready", "", since).report("UpToDate", "True", "UpToDate", "", since)
}

// reportedObjects returns a Cluster that has one worker of two.
func reportedObjects() *Objects {
	plane := map[string]any{"desiredReplicas": int64(3), "replicas": int64(3), "availableReplicas": int64(3), "readyReplicas": int64(3), "upToDateReplicas": int64(3)}
	workers := map[string]any{"desiredReplicas": int64(2), "replicas": int64(2), "availableReplicas": int64(1), "readyReplicas": int64(1), "upToDateReplicas": int64(2)}
	list := []object{
		newObject(coreVersion, "Cluster", "c1").ready(time.Hour).set("v1.33.1", "spec", "topology", "version").
			report("Available", "False", "NotAvailable", "* WorkersAvailable:\n  * MachineDeployment c1-md: 1 available replicas, at least 2 required", time.Minute).
			report("RollingOut", "False", "NotRollingOut", "", time.Hour).report("Paused", "False", "NotPaused", "", time.Hour).
			set(plane, "status", "v1beta2", "controlPlane").set(workers, "status", "v1beta2", "workers").
			ref(infrastructureVersion, "ToyCluster", "c1", clusterInfrastructure...).
			ref(controlPlaneVersion, "KubeadmControlPlane", "c1-cp", clusterControlPlane...),
		newObject(infrastructureVersion, "ToyCluster", "c1").condition("Ready", "True", "", "Ready", "", time.Hour),
		newObject(controlPlaneVersion, "KubeadmControlPlane", "c1-cp").counted(3, 3, 3, 3, 3).set("v1.33.1", "spec", "version").
			report("Available", "True", "Available", "", 2*time.Hour),
		newObject(coreVersion, "MachineDeployment", "c1-md").counted(2, 2, 1, 1, 2).set("v1.33.1", "spec", "template", "spec", "version").
			report("Available", "False", "NotAvailable", "1 available replicas, at least 2 required", time.Minute).
			report("ScalingUp", "True", "ScalingUp", "", time.Minute),
		newObject(coreVersion, "MachineSet", "c1-md-1").owned("MachineDeployment", "c1-md").counted(2, 2, 1, 1, 2),
		reportedMachine("c1-md-1-a", "MachineSet", "c1-md-1", time.Minute),
		newObject(coreVersion, "Machine", "c1-md-1-b").owned("MachineSet", "c1-md-1").
			report("Available", "False", "NotAvailable", "", time.Minute).report("UpToDate", "True", "UpToDate", "", time.Minute).
			report("Ready", "False", "NotReady", "* InfrastructureReady: there is no capacity in the zone, and there will be none until machines of another "+
				"tenant are deleted there\n* NodeHealthy: Waiting for the Node", time.Minute),
	}
	for i := range 3 {
		list = append(list, reportedMachine(fmt.Sprintf("c1-cp-%d", i), "KubeadmControlPlane", "c1-cp", time.Duration(i+1)*time.Hour).label(clusterv1.MachineControlPlaneLabel))
	}
	return with(NewObjects(), list...)
}

func TestReports(t *testing.T) {
	for name, tc := range map[string]treeCase{
		"Reports": {
			reason:  "The conditions and counters of v1beta2; Machines in the same state are grouped, and messages wrapped.",
			options: Options{Grouping: true},
		},
		"Reports, all sets": {
			reason:  "MachineSets show counters alone, and what is deleted is marked.",
			objects: with(reportedObjects(), reportedMachine("c1-md-1-a", "MachineSet", "c1-md-1", time.Minute).deleting()),
			options: Options{MachineSets: true, Echo: true},
		},
		"Reports, conditions": {
			reason:  "Conditions are below an object whose row does not repeat the most important one, in the order in which they are stored.",
			options: Options{Grouping: true, ShowConditions: []string{"cluster", "MachineDeployment/c1-md+"}},
		},
		"Reports, not yet": {
			reason: "What is not reported yet has the state of v1beta1; Machines in another state have their own lines.",
			objects: with(reportedObjects(),
				newObject(coreVersion, "Cluster", "c1").condition("Ready", "False", "Info", "WaitingForControlPlane", "", time.Second).
					report("TopologyReconciled", "True", "ReconcileSucceeded", "", time.Second).
					ref(controlPlaneVersion, "KubeadmControlPlane", "c1-cp", clusterControlPlane...),
				newObject(coreVersion, "Machine", "c1-md-1-a").owned("MachineSet", "c1-md-1").condition("Ready", "False", "Info", "WaitingForBootstrapData", "", time.Second),
				newObject(coreVersion, "Machine", "c1-md-1-b").owned("MachineSet", "c1-md-1").ready(time.Second),
			),
			options: Options{Grouping: true},
		},
		"Reports, without class": {
			reason: "The row of a Cluster whose class has never been applied has no state: the reason is below it. Available has it later.",
			objects: with(NewObjects(), newObject(coreVersion, "Cluster", "c1").set("v1.33.1", "spec", "topology", "version").
				report("TopologyReconciled", "False", "ReconcileFailed", "patch audit: apiServer does not exist: add it to the template", time.Minute)),
			options: Options{Grouping: true},
		},
		"Reports, behind Available": {
			reason: "An upgrade that is deferred does not make a Cluster unavailable.",
			objects: with(NewObjects(), newObject(coreVersion, "Cluster", "c1").report("Available", "True", "Available", "", time.Hour).
				report("TopologyReconciled", "False", "MachineDeploymentsUpgradeDeferred", "MachineDeployment md is deferred", time.Minute)),
			options: Options{Grouping: true},
		},
		"Reports, in 120 columns": {
			reason:  "Messages are below the rows of a table that is too wide, and nothing else changes.",
			objects: with(reportedObjects(), reportedMachine("c1-md-1-a", "MachineSet", "c1-md-1", time.Minute).deleting()),
			options: Options{Grouping: true},
			width:   120,
		},
		"Reports, narrow terminal": {
			reason:  "Names have no namespace where even that is too wide.",
			options: Options{Grouping: true, ShowConditions: []string{"MachineDeployment"}},
			width:   107,
			short:   true,
		},
		"Reports, very narrow terminal": {
			reason: "Nor do they have the version of the Cluster, next.", options: Options{Grouping: true}, width: 88, short: true,
		},
		"Reports, all conditions": {
			reason:  "Of all objects, those that tell something.",
			options: Options{Grouping: true, ShowConditions: []string{"all+"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Reports = true
			if tc.objects == nil {
				tc.objects = reportedObjects()
			}
			tc.test(t, name)
		})
	}
}

// TestCountMachines: the row of the Cluster counts its Machines, whose numbers its status has a moment later.
func TestCountMachines(t *testing.T) {
	objects := with(reportedObjects(), reportedMachine("c1-md-1-b", "MachineSet", "c1-md-1", time.Second))
	root := Build(testCluster, objects, Options{Reports: true, CountMachines: true})
	if r := root.Report; r.Replicas != "5/5" || *r.Available != 5 || *r.Ready != 5 || *r.UpToDate != 5 {
		t.Errorf("replicas %s, available %d, ready %d, up to date %d", r.Replicas, *r.Available, *r.Ready, *r.UpToDate)
	}
}

// TestReported: managers that set no conditions of v1beta2 have the table of v1beta1.
func TestReported(t *testing.T) {
	old := base().Cluster(testCluster)
	if Reported(old) || Reported(nil) {
		t.Error("an object without conditions of v1beta2 has none")
	}
	if !Reported(reportedObjects().Cluster(testCluster)) {
		t.Error("conditions of v1beta2 are not found")
	}
}

func TestHealthOfConditions(t *testing.T) {
	for _, tc := range []struct {
		kind, status string
		want         health
	}{
		{"Available", "True", good}, {"Available", "False", bad}, {"Available", "Unknown", unknown},
		{"Available", "", unknown}, {"Paused", "False", good}, {"Deleting", "True", bad}, {"ScalingUp", "Unknown", unknown},
	} {
		if got := (Condition{Type: tc.kind, Status: tc.status}).health(); got != tc.want {
			t.Errorf("%s %s is %d, want %d", tc.kind, tc.status, got, tc.want)
		}
	}
}

func TestLinesOfMessages(t *testing.T) {
	for _, tc := range []struct {
		reason, message string
		want            []string
	}{
		{"no message has one line", "", []string{""}},
		{"items of a list stay items", "* a: b\n  * c", []string{"* a: b", "  * c"}},
		{
			"what does not fit is indented as the item", "* " + "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 01234567890",
			[]string{"* 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789", "  01234567890"},
		},
	} {
		if diff := cmp.Diff(tc.want, messageLines(tc.message, maxMessage)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}
