package membership

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const joinTimeout = 5 * time.Minute

// joining is a control plane whose Machine c is being deleted while its machine may be joining.
type joining struct {
	*bench
	f *kcptest.Workload
	r *Remover
	// config is the KubeadmConfig of c, token the ID of its bootstrap token.
	config *bootstrapv1.KubeadmConfig
	token  string
}

func join(t *testing.T) *joining {
	t.Helper()
	b, f := three(t)
	config := &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{UID: "config-of-c"}}
	j := &joining{bench: b, f: f, config: config, token: kubeadm.TokenIDOf(config)}
	delete(f.Members, "c")
	f.Gone("c")
	f.Tokens = map[string]bool{j.token: true, "others": true}
	b.UpdateStatus(t, "c", func(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} })
	b.Update(t, "c", func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = ptr.To("data") })
	b.Deleted(t, "c")
	b.Drained(t, "c")
	j.restart()
	return j
}

// alone leaves a as the only Machine with an etcd member.
func (j *joining) alone(t *testing.T) {
	t.Helper()
	delete(j.f.Members, "b")
	j.f.Gone("b")
	j.Update(t, "b", func(m *clusterv1.Machine) { m.OwnerReferences[0].UID = "other" })
}

// restart replaces the process.
func (j *joining) restart() { j.r = &Remover{Clients: j.Clients, JoinTimeout: joinTimeout} }

// reconcile reports whether c is still held.
func (j *joining) reconcile(t *testing.T) bool {
	t.Helper()
	reload(t, j.bench, j.f)
	j.Machines = slices.DeleteFunc(j.Machines, func(m *snapshot.Machine) bool { return m.OwnerReferences[0].UID == "other" })
	j.Named("c").Config = j.config
	if _, err := j.r.PreTerminate(t.Context(), j.state()); err != nil {
		t.Fatal(err)
	}
	return slices.Contains(j.Held(t), "c")
}

// kubeadm may be joining on the machine of a Machine without a Node. With one other member, etcd would lose its quorum if the machine was
// deleted after it has joined.
func TestAMachineThatMayBeJoiningIsHeld(t *testing.T) {
	const revoked = "revoke "
	type step struct {
		reason string
		// later is the time that passes before the reconcile, and happens what happens then.
		later   time.Duration
		happens func(t *testing.T, j *joining)
		held    bool
		// actions are the changes of the workload cluster. "revoke" is followed by the ID of the token.
		actions []string
	}
	alone := func(t *testing.T, j *joining) { j.alone(t) }
	joins := func(_ *testing.T, j *joining) { j.f.Members["c"] = true; j.f.Leader = "a" }
	restart := func(_ *testing.T, j *joining) { j.restart() }
	tests := []struct {
		reason string
		steps  []step
	}{
		{"two other members keep the quorum", []step{{reason: "it is released at once"}}},
		{"of two others one does not run", []step{
			{reason: "three of four would be the quorum", happens: func(_ *testing.T, j *joining) { j.f.Gone("b"); j.f.Members["d"] = true; j.f.Boot("d") }, held: true},
		}},
		{"it never joins", []step{
			{reason: "the token is revoked", happens: alone, held: true, actions: []string{revoked}},
			{reason: "kubeadm may have used it before", later: joinTimeout - time.Second, held: true},
			{reason: "it has not", later: time.Second},
		}},
		{"it joins nevertheless", []step{
			{reason: "the token is revoked", happens: alone, held: true, actions: []string{revoked}},
			{reason: "the member is removed, and kubeadm may retry", later: joinTimeout - time.Second, happens: joins, held: true, actions: []string{"remove c"}},
			{reason: "it retries, after the first time has passed", later: joinTimeout - time.Second, happens: joins, held: true, actions: []string{"remove c"}},
			{reason: "it does not retry again", later: joinTimeout},
		}},
		{"the manager is killed", []step{
			{reason: "the token is revoked", happens: alone, held: true, actions: []string{revoked}},
			{reason: "the next process does not know since when", later: joinTimeout, happens: restart, held: true},
			{reason: "and waits anew", later: joinTimeout},
		}},
		{"the token is created again", []step{
			{reason: "the token is revoked", happens: alone, held: true, actions: []string{revoked}},
			{
				reason: "by a bootstrap provider with an old cache", later: joinTimeout, held: true, actions: []string{revoked},
				happens: func(_ *testing.T, j *joining) { j.f.Tokens[j.token] = true },
			},
			{reason: "now it cannot be used any more", later: joinTimeout},
		}},
		{"there is no bootstrap data", []step{{reason: "no machine runs it", happens: func(t *testing.T, j *joining) {
			j.alone(t)
			j.Update(t, "c", func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = nil })
		}}}},
		{"its member was removed before an interruption", []step{{reason: "its Pod shows that kubeadm has joined", happens: func(t *testing.T, j *joining) {
			j.alone(t)
			j.f.Boot("c")
			delete(j.f.Members, "c")
			j.UpdateStatus(t, "c", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "c" })
		}}}},
		{"it has a Node, and no Pod of etcd", []step{{
			reason: "kubeadm has not joined etcd yet", held: true, actions: []string{revoked},
			happens: func(t *testing.T, j *joining) {
				j.alone(t)
				j.UpdateStatus(t, "c", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "c" })
			},
		}}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			j := join(t)
			clock := clocktesting.NewFakeClock(j.Clock.Now())
			j.Clock = clock
			j.restart()
			for _, s := range tt.steps {
				clock.Step(s.later)
				if s.happens != nil {
					s.happens(t, j)
				}
				before := len(j.f.Actions())
				if held := j.reconcile(t); held != s.held {
					t.Errorf("%s: held %t", s.reason, held)
				}
				var got []string
				for _, action := range j.f.Actions()[before:] {
					got = append(got, strings.TrimSuffix(action, j.token))
				}
				if diff := cmp.Diff(s.actions, got); diff != "" && s.actions != nil {
					t.Errorf("%s: actions (-want +got):\n%s", s.reason, diff)
				}
				if !s.held && len(j.f.QuorumLost) > 0 {
					t.Errorf("%s: quorum lost: %q", s.reason, j.f.QuorumLost)
				}
			}
		})
	}
}

// What the Machine is held for is reported, without a write for each reconcile.
func TestJoiningIsReported(t *testing.T) {
	j := join(t)
	j.alone(t)
	for round, want := range []int{1, 0} {
		j.API.Writes = nil
		j.reconcile(t)
		if got := j.StatusWrites(); got != want {
			t.Errorf("round %d: %d writes of status, want %d", round, got, want)
		}
	}
	const want = "The etcd member cannot be removed yet. Waiting for 5m0s to pass: its machine may be joining etcd, which would have no quorum " +
		"if that machine was gone then"
	reload(t, j.bench, j.f)
	if got := condition.Get(j.Named("c"), controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition); got == nil || got.Message != want {
		t.Errorf("condition %+v", got)
	}
}
