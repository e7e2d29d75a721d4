package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/sshtest"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// curl answers as an etcd member does that is alone.
const curl = `case $* in
*/maintenance/status) echo '{"header":{"cluster_id":"255","member_id":"16","revision":"7"},"version":"3.6.8",
	"leader":"16","raftIndex":"12","raftTerm":"3"}' ;;
*/cluster/member/list) echo '{"members":[{"ID":"16","peerURLs":["https://10.0.0.1:2380"]}]}' ;;
esac
`

// TestEtcdCommand has a Host whose etcd, kubelet and processes are simulated.
func TestEtcdCommand(t *testing.T) {
	alone := &fleetv1.EtcdMemberState{
		ID: "10", ClusterID: "ff", Leader: "10", RaftIndex: 12, RaftTerm: 3, Revision: 7, Version: "3.6.8", Members: []string{"10"},
	}
	bootstrapped := func(t *testing.T, w *sshtest.Server) { write(t, w, sshtest.State+"/claim", "1") }
	tests := []struct {
		reason  string
		command fleetv1.EtcdCommandName
		before  func(t *testing.T, w *sshtest.Server)
		// answered is a part of the error, empty if there is none.
		answered string
		after    time.Duration
	}{
		{"the state is read", fleetv1.EtcdCommandInspect, func(t *testing.T, w *sshtest.Server) {
			bootstrapped(t, w)
			w.Program(t, "curl", curl)
		}, "", 0},
		{"etcd does not run", fleetv1.EtcdCommandInspect, func(t *testing.T, w *sshtest.Server) {
			bootstrapped(t, w)
			w.Program(t, "curl", "exit 7")
		}, "etcd does not respond on the machine", 0},
		{"the member is the only one", fleetv1.EtcdCommandForceNewCluster, func(t *testing.T, w *sshtest.Server) {
			bootstrapped(t, w)
			write(t, w, "var/lib/cluster-api/etcd/done", "u.1") // by a manager that was killed before it answered
			w.Program(t, "curl", curl)
			w.Program(t, "systemctl", "exit 0")
		}, "", 0},
		{"a change that has failed is tried again", fleetv1.EtcdCommandForceNewCluster, func(t *testing.T, w *sshtest.Server) {
			bootstrapped(t, w)
			w.Program(t, "systemctl", "exit 0")
			w.Program(t, "sleep", "exit 0")
		}, "etcd does not run", retryInterval},
		{"nothing was bootstrapped", fleetv1.EtcdCommandInspect, func(*testing.T, *sshtest.Server) {},
			"Host h was not bootstrapped for this machine", 0},
		{"another machine was bootstrapped", fleetv1.EtcdCommandInspect, func(t *testing.T, w *sshtest.Server) {
			write(t, w, sshtest.State+"/claim", "2")
		}, "Host h was not bootstrapped for this machine", 0},
		{"the Host is lost", fleetv1.EtcdCommandInspect, func(_ *testing.T, w *sshtest.Server) { w.Unplug() },
			"Host h: connecting: ", 0},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := sshtest.Start(t)
			tc.before(t, w)
			obj := newMachine(has("h", "1"), func(m *hostsv1.HostMachine) {
				m.Annotations = map[string]string{fleetv1.EtcdCommandAnnotation: `{"uid":"u.1","command":"` + string(tc.command) + `"}`}
			})
			got, result := answered(t, w, obj)
			want := fleetv1.EtcdAnswer{UID: "u.1", Command: tc.command}
			switch {
			case tc.answered == "":
				want.Member = alone
			case strings.Contains(got.Error, tc.answered):
				want.Error = got.Error
			default:
				want.Error = tc.answered
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if result.After() != tc.after {
				t.Errorf("it is done again after %s, want %s", result.After(), tc.after)
			}
			before := w.Commands("sh")
			if again, _ := answered(t, w, obj); tc.after == 0 && (w.Commands("sh") != before || again == nil) {
				t.Error("what is answered is done again")
			}
		})
	}
}

// answered does the step until the answer is there.
func answered(t *testing.T, w *sshtest.Server, obj *hostsv1.HostMachine) (answer *fleetv1.EtcdAnswer, result step.Result) {
	t.Helper()
	key := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ssh-key"}, Data: map[string][]byte{corev1.SSHAuthPrivateKey: w.PrivateKey},
	}
	host := newHost("h")
	host.Spec = w.Spec()
	claimedBy("m", "1")(host)
	c := newController(newAPI(t, key))
	testenv.Eventually(t, "an answer", func() error {
		var err error
		result, err = steptest.Run(t.Context(), obj, &scope{obj: obj, host: host}, step.Do("etcd-command", c.etcdCommand))
		testenv.Must(t, err)
		if answer = fleetv1.EtcdAnswerOf(obj, "u.1"); answer == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return answer, result
}

func write(t *testing.T, w *sshtest.Server, path, content string) {
	t.Helper()
	path = filepath.Join(w.Root, path)
	testenv.Must(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
}
