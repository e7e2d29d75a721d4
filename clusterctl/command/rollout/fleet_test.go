package rollout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterrollout"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestRolloutName(t *testing.T) {
	for _, tc := range []struct {
		reason, want, err string
		args              []string
	}{
		{reason: "a name", args: []string{"up"}, want: "up"},
		{reason: "with its type", args: []string{"ClusterRollout/up"}, want: "up"},
		{reason: "no name", err: "the name of a ClusterRollout is required"},
		{reason: "two names", args: []string{"a", "b"}, err: "expected one name of a ClusterRollout, got 2 (a, b)"},
		{reason: "another type", args: []string{"machinedeployment/a"}, err: "`clusterctl wait cluster NAME`"},
	} {
		got, err := rolloutName(&cobra.Command{Use: "status"}, tc.args)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v, want %q, %q", tc.reason, got, err, tc.want, tc.err)
		}
	}
}

// TestFleetCommands parses the arguments of the commands.
func TestFleetCommands(t *testing.T) {
	streams, _ := iostreams.Test()
	f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
	var plan *PlanOptions
	var approve *ApproveOptions
	var abort *AbortOptions
	var status *StatusOptions
	commands := map[string]*cobra.Command{
		"plan":    NewPlan(f, func(_ context.Context, o *PlanOptions) error { plan = o; return nil }),
		"approve": NewApprove(f, func(_ context.Context, o *ApproveOptions) error { approve = o; return nil }),
		"abort":   NewAbort(f, func(_ context.Context, o *AbortOptions) error { abort = o; return nil }),
		"status":  NewStatus(f, func(_ context.Context, o *StatusOptions) error { status = o; return nil }),
		"retry":   NewRetry(f, func(context.Context, *FleetOptions) error { return nil }),
	}
	run := func(line string) error {
		words := strings.Fields(line)
		cmd := commands[words[0]]
		cmd.SetArgs(words[1:])
		cmd.SetOut(streams.Out)
		cmd.SetErr(streams.Err)
		return cmd.ExecuteContext(t.Context())
	}
	for _, line := range []string{
		"plan -f a.yaml -o json --exit-code", "approve up --stage s --plan-hash h", "abort up --rollback -y", "status up -n ns", "retry up",
	} {
		testenv.Must(t, run(line))
	}
	if len(plan.Files) != 1 || !plan.ExitCode || approve.Stage != "s" || approve.PlanHash != "h" || !abort.Rollback || !abort.Yes || status.Namespace != "ns" {
		t.Errorf("plan %+v, approve %+v, abort %+v, status %+v", plan, approve, abort, status)
	}
	for line, want := range map[string]string{
		"plan up":               "exclude each other", // The flag of before is still set.
		"status up -w -o json":  "--watch is not supported with --output json",
		"status up -o wide":     "is not supported: use text, json or yaml",
		"retry":                 "the name of a ClusterRollout is required",
		"approve up --stage= x": "expected one name",
	} {
		if err := run(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestAsk(t *testing.T) {
	for answer, want := range map[string]string{
		"up\n": "", "no\n": "nothing is changed", "": "nothing is changed: there is no answer; use --yes without a terminal",
	} {
		streams, buffers := iostreams.Test()
		buffers.In.WriteString(answer)
		err := (&FleetOptions{IO: streams, Name: "up"}).ask("Really?")
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("answer %q: %v, want %q", answer, err, want)
		}
	}
}

// TestFollow prints what changes, lists Clusters only if the rollout has changed, and ends with the rollout.
func TestFollow(t *testing.T) {
	streams, buffers := iostreams.Test()
	clock := clocktesting.NewFakeClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	lists, reads := 0, 0
	w := &watcher{StatusOptions: &StatusOptions{FleetOptions: &FleetOptions{IO: streams, Clock: clock}}}
	w.get = func(context.Context) (*fleetv1.ClusterRollout, error) {
		r := &fleetv1.ClusterRollout{}
		r.Namespace, r.Name, r.UID, r.ResourceVersion, r.Status.Phase = "default", "up", "uid", "1", fleetv1.RolloutProgressing
		r.Status.Stages = []fleetv1.RolloutStageStatus{{Name: "all"}}
		if reads++; reads == 3 {
			r.ResourceVersion, r.Status.Phase = "2", fleetv1.RolloutCompleted
		}
		return r, nil
	}
	w.list = func(context.Context, *fleetv1.ClusterRollout) ([]clusterrollout.Entry, error) {
		lists++
		e := &fleetv1.RolloutEntry{Rollout: "up", ID: "uid", Stage: "all", State: fleetv1.RolloutStateUpdating, Since: metav1.NewTime(clock.Now())}
		if lists == 2 {
			e.State = fleetv1.RolloutStateDone
		}
		return []clusterrollout.Entry{{Cluster: "a", RolloutEntry: e}}, nil
	}
	ended := make(chan error)
	go func() { ended <- w.follow(t.Context()) }()
	for range 2 {
		testenv.Eventually(t, "the command waits", func() error {
			if !clock.HasWaiters() {
				return errors.New("it does not")
			}
			return nil
		})
		clock.Step(interval)
	}
	testenv.Must(t, <-ended)
	out := buffers.Out.String()
	if lists != 2 || strings.Count(out, "Progressing, 0 of 1 Cluster done") != 1 || !strings.Contains(out, "Completed, 1 of 1 Cluster done") {
		t.Errorf("%d lists, output:\n%s", lists, out)
	}
}
