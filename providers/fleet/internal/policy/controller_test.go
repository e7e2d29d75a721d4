package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}

// world has a policy that makes backups at every full hour, and Clusters with control planes.
type world struct {
	*fakeapi.Server
	runner *step.Runner[*fleetv1.EtcdBackupPolicy]
}

func newPolicy() *fleetv1.EtcdBackupPolicy {
	p := &fleetv1.EtcdBackupPolicy{ObjectMeta: object.Builder{}.Meta("EtcdBackupPolicy", "hourly")}
	p.CreationTimestamp = metav1.NewTime(object.Now().Add(-24 * time.Hour))
	p.Spec = fleetv1.EtcdBackupPolicySpec{
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"backup": "yes"}},
		Schedule:        "0 * * * *", SpreadSeconds: ptr.To[int32](0), Retention: fleetv1.Retention{Count: ptr.To[int32](1)},
		BackupSettings: fleetv1.BackupSettings{
			StoreRef: fleetv1.LocalReference{Name: "bucket"}, Encryption: fleetv1.Encryption{Recipients: []string{"age1"}},
		},
	}
	return p
}

func newCluster(name string) *clusterv1.Cluster {
	return object.Builder{ClusterName: name}.Cluster(object.Initialized, func(c *clusterv1.Cluster) {
		c.Labels = map[string]string{"backup": "yes"}
		c.CreationTimestamp = metav1.NewTime(object.Now().Add(-24 * time.Hour))
	})
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	objects = append(objects, &fleetv1.BackupStore{ObjectMeta: object.Builder{}.Meta("BackupStore", "bucket")})
	w := &world{Server: fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{fleetv1.AddToScheme}, Objects: objects})}
	w.restart()
	return w
}

func (w *world) restart() {
	c := &Controller{Clients: w.ForController()}
	w.runner = c.declared().Runner(c.Clients)
}

func (w *world) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newPolicy())})
	if err != nil && !step.IsStale(err) {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) policy(t *testing.T) *fleetv1.EtcdBackupPolicy {
	t.Helper()
	p := newPolicy()
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	return p
}

func (w *world) backups(t *testing.T) []fleetv1.EtcdBackup {
	t.Helper()
	all := &fleetv1.EtcdBackupList{}
	testenv.Must(t, w.List(t.Context(), all))
	return all.Items
}

// end ends all backups that run.
func (w *world) end(t *testing.T, phase fleetv1.BackupPhase) {
	t.Helper()
	for _, b := range w.backups(t) {
		if !b.Ended() {
			b.Status.Phase, b.Status.CompletionTime = phase, &metav1.Time{Time: w.Clock.Now()}
			testenv.Must(t, w.Status().Update(t.Context(), &b))
		}
	}
}

// names are the names of the backups without their random end: the Cluster and the hour.
func (w *world) names(t *testing.T) string {
	t.Helper()
	var all []string
	for _, b := range w.backups(t) {
		all = append(all, b.Name[:strings.LastIndex(b.Name, "-")])
	}
	return strings.Join(all, " ")
}

func TestLife(t *testing.T) {
	other := newCluster("other")
	other.Labels = nil
	w := newWorld(t, newPolicy(), newCluster("a"), newCluster("b"), other)
	// It is 03:04:05.
	if after := w.reconcile(t); after != 55*time.Minute+55*time.Second {
		t.Errorf("the next reconcile is in %s, want the next full hour", after)
	}
	if got, want := w.names(t), "a-20260102-030000 b-20260102-030000"; got != want {
		t.Errorf("got backups %s, want %s", got, want)
	}
	first := w.backups(t)[0]
	want := fleetv1.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: first.Namespace, Name: first.Name, UID: first.UID, ResourceVersion: first.ResourceVersion,
			Labels:      map[string]string{clusterv1.ClusterNameLabel: "a", fleetv1.PolicyLabel: "hourly"},
			Annotations: map[string]string{fleetv1.SlotAnnotation: "2026-01-02T03:00:00Z", fleetv1.PolicyLabel: "hourly"},
			Finalizers:  []string{fleetv1.EtcdBackupFinalizer},
		},
		Spec: fleetv1.EtcdBackupSpec{ClusterName: "a", BackupSettings: newPolicy().Spec.BackupSettings},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.Writes = nil
	w.reconcile(t)
	if len(w.Writes) > 0 {
		t.Errorf("nothing is due, but it wrote %v", w.Writes)
	}
	w.end(t, fleetv1.BackupPhaseCompleted)
	w.Clock.Step(time.Hour)
	w.reconcile(t)
	w.end(t, fleetv1.BackupPhaseCompleted)
	w.reconcile(t)
	for _, b := range w.backups(t) {
		if deleted := !b.DeletionTimestamp.IsZero(); deleted != strings.Contains(b.Name, "-0300") {
			t.Errorf("%s is deleted: %v", b.Name, deleted)
		}
	}
	p := w.policy(t)
	if !report.IsTrue(p, fleetv1.PolicyHealthyCondition) || *p.Status.Clusters != 2 || *p.Status.Current != 2 ||
		!p.Status.OldestSuccessTime.Time.Equal(w.Clock.Now()) {
		t.Errorf("want two Clusters with recent backups: %+v", p.Status)
	}
}

// TestStaleCache checks that a process with an old cache neither creates a backup twice nor deletes the last one.
func TestStaleCache(t *testing.T) {
	w := newWorld(t, newPolicy(), newCluster("a"))
	w.Cache.Freeze(&fleetv1.EtcdBackupList{}, &fleetv1.EtcdBackupPolicyList{})
	for range 3 {
		w.reconcile(t)
	}
	if all := w.backups(t); len(all) != 1 {
		t.Fatalf("there are %d backups, want 1", len(all))
	}
	w.Cache.Thaw()
	w.end(t, fleetv1.BackupPhaseCompleted)
	w.Clock.Step(time.Hour)
	w.reconcile(t)
	w.end(t, fleetv1.BackupPhaseCompleted)
	w.Cache.Freeze(&fleetv1.EtcdBackupList{}, &fleetv1.EtcdBackupPolicyList{})
	newest := w.backups(t)[1]
	newest.Finalizers = nil
	testenv.Must(t, w.Update(t.Context(), &newest), w.Delete(t.Context(), &newest))
	w.restart()
	w.reconcile(t)
	if all := w.backups(t); len(all) != 1 || !all[0].DeletionTimestamp.IsZero() {
		t.Errorf("the last backup was deleted because of one that exists in the cache only: %v", all)
	}
}

// TestChangedRetention checks that nothing is deleted by rules that no longer hold.
func TestChangedRetention(t *testing.T) {
	w := newWorld(t, newPolicy(), newCluster("a"))
	w.reconcile(t)
	w.end(t, fleetv1.BackupPhaseCompleted)
	w.Clock.Step(time.Hour)
	w.reconcile(t)
	w.end(t, fleetv1.BackupPhaseCompleted)
	w.Cache.Freeze(&fleetv1.EtcdBackupList{}, &fleetv1.EtcdBackupPolicyList{})
	p := w.policy(t)
	p.Spec.Retention.Count = ptr.To[int32](10)
	p.Generation++
	testenv.Must(t, w.Update(t.Context(), p))
	w.reconcile(t)
	for _, b := range w.backups(t) {
		if !b.DeletionTimestamp.IsZero() {
			t.Errorf("%s was deleted by the retention of before", b.Name)
		}
	}
}

func TestConditions(t *testing.T) {
	tests := []struct {
		reason  string
		change  func(*fleetv1.EtcdBackupPolicy)
		end     fleetv1.BackupPhase
		later   time.Duration
		want    string
		created int
	}{
		{reason: "a time zone that does not exist", change: func(p *fleetv1.EtcdBackupPolicy) { p.Spec.Schedule = "CRON_TZ=Mars/Olympus 0 * * * *" },
			want: `False Invalid spec.schedule: "CRON_TZ=Mars/Olympus 0 * * * *" is not a schedule such as "0 2 * * *": ` +
				"provided bad location Mars/Olympus: unknown time zone Mars/Olympus"},
		{reason: "an operator that does not exist", change: func(p *fleetv1.EtcdBackupPolicy) {
			p.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
		}, want: `False Invalid spec.clusterSelector: "Like" is not a valid label selector operator`},
		{reason: "nothing is selected", change: func(p *fleetv1.EtcdBackupPolicy) { p.Spec.ClusterSelector.MatchLabels["backup"] = "no" },
			want: "Unknown NoClusters spec.clusterSelector selects no Cluster in namespace default"},
		{reason: "a policy that is paused creates nothing, and says so", change: func(p *fleetv1.EtcdBackupPolicy) {
			p.Spec.Paused = ptr.To(true)
			p.CreationTimestamp = metav1.NewTime(object.Now())
		}, want: "Unknown Suspended spec.paused is set"},
		{reason: "without its store, nothing can be kept", change: func(p *fleetv1.EtcdBackupPolicy) { p.Spec.StoreRef.Name = "other" }, created: 1,
			want: "False Invalid spec.storeRef: BackupStore other does not exist in namespace default"},
		{reason: "a backup that is being made is not overdue", want: "Unknown WaitingForBackups Waiting for the first backup of a", created: 1,
			change: func(p *fleetv1.EtcdBackupPolicy) { p.CreationTimestamp = metav1.NewTime(object.Now().Add(-time.Hour)) }},
		{reason: "one that failed is, after its time", end: fleetv1.BackupPhaseFailed, later: 2 * time.Hour, created: 2,
			want: "False BackupsOverdue No recent backup of a: see their EtcdBackups"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			p := newPolicy()
			if tt.change != nil {
				tt.change(p)
			}
			w := newWorld(t, p, newCluster("a"))
			w.reconcile(t)
			if tt.end != "" {
				w.end(t, tt.end)
			}
			if tt.later > 0 {
				w.Clock.Step(tt.later)
				w.reconcile(t)
			}
			c := report.Get(w.policy(t), fleetv1.PolicyHealthyCondition)
			if got := fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := len(w.backups(t)); got != tt.created {
				t.Errorf("it created %d backups, want %d", got, tt.created)
			}
		})
	}
}
