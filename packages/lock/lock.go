// Package lock lets one clusterctl at a time do a task, such as moving the objects of a namespace: it holds a Lease.
//
// A Lease does not stop requests that are under way when it is lost. Every write of these tasks is safe to repeat, so that two
// processes that overlap for a moment disturb, but do not harm each other.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/packages/retry"
)

// Durations of the Lease. A holder that does not respond, on another machine, delays its successor by duration.
const (
	duration = 15 * time.Second
	renewal  = 10 * time.Second
	attempts = time.Second
	// response is the timeout of a request, so that one that hangs is repeated before the Lease is lost.
	response = 4 * time.Second
)

// ErrLost is the cause of a canceled context if the Lease was lost.
var ErrLost = errors.New("the Lease was lost: the cluster was unreachable, or another clusterctl has taken over: " +
	"run the same command again to continue")

// Task is what only one process does at a time.
type Task struct {
	// Lease is the name of the Lease.
	Lease string
	// Does is what the process does, for messages: "moves these objects".
	Does string
	// Cluster has the Lease, for messages: "source cluster".
	Cluster string
}

// Lock is a Lease to hold.
type Lock struct {
	Task
	Config    *rest.Config
	Namespace string
	// Self is the holder; see Self.
	Self Holder
	// Ended reports whether another holder is a process of this machine that has ended; see Ended.
	Ended func(Holder) bool
	// Retry is how requests are repeated before leader election begins.
	Retry retry.Policy
	Clock clock.PassiveClock
	// Say shows what is waited for.
	Say func(format string, args ...any)
	// Explain formats the error of a request for users; nil for its text.
	Explain func(error) string
}

// Holder is a process.
type Holder struct {
	Host string
	// Processes identifies the boot and the PID namespace; empty if unknown.
	Processes string
	PID       int
}

// Self returns this process.
func Self() Holder {
	h := Holder{PID: os.Getpid()}
	// Without a name, processes are never considered to be on the same machine.
	h.Host, _ = os.Hostname()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return h
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		h.Processes = strings.TrimSpace(string(boot)) + "-" + strings.Trim(strings.TrimPrefix(ns, "pid:"), "[]")
	}
	return h
}

// String returns host, processes and PID, separated by underscores.
func (h Holder) String() string { return fmt.Sprintf("%s_%s_%d", h.Host, h.Processes, h.PID) }

func parse(identity string) Holder {
	parts := strings.Split(identity, "_")
	if len(parts) != 3 {
		return Holder{Host: identity}
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil {
		return Holder{Host: identity}
	}
	return Holder{Host: parts[0], Processes: parts[1], PID: pid}
}

// Ended reports whether the holder is a process of this machine that has ended.
func Ended(h Holder) bool {
	self := Self()
	if h.Host != self.Host || h.Processes == "" || h.Processes != self.Processes {
		return false
	}
	return !isRunning(h.PID)
}

// Hold waits for the Lease, runs the function while it is held, and deletes the Lease. The context of the function is canceled
// if the Lease is lost. Hold gives up if the cluster does not respond for a minute, or another process that is running keeps the
// Lease for five.
func (l *Lock) Hold(ctx context.Context, run func(context.Context) error) error {
	config := rest.CopyConfig(l.Config)
	config.Timeout = response
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := l.prepare(ctx, leases.Leases(l.Namespace)); err != nil {
		return err
	}
	// The Lease is held until the function has returned, also if the command is interrupted.
	holding, release := context.WithCancelCause(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer release(nil)
	stopWaiting := context.AfterFunc(ctx, func() { release(context.Cause(ctx)) })
	candidate := &candidate{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Lease}, Client: leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.Self.String()},
		},
		task: l.Task, explain: l.explain, clock: l.Clock, say: l.Say, giveUp: release,
	}
	var result error
	ended := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: candidate, LeaseDuration: duration, RenewDeadline: renewal, RetryPeriod: attempts, ReleaseOnCancel: true, Name: l.Lease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer close(ended)
				defer release(nil)
				stopWaiting()
				result = l.guarded(ctx, leading, run)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(holding)
	if !candidate.elected() {
		return context.Cause(holding)
	}
	<-ended
	l.remove(ctx, leases.Leases(l.Namespace))
	return result
}

// explain formats an error for users.
func (l *Lock) explain(err error) string {
	if l.Explain == nil {
		return err.Error()
	}
	return l.Explain(err)
}

// guarded runs the function until it returns, the command is interrupted, or the Lease is lost.
func (l *Lock) guarded(ctx, leading context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(leading, func() { cancel(ErrLost) })()
	return run(ctx)
}

// prepare checks that Leases can be used, and takes the Lease over from a process that has ended.
func (l *Lock) prepare(ctx context.Context, leases coordinationclient.LeaseInterface) error {
	var lease *coordinationv1.Lease
	err := l.retry("read").Do(ctx, func(ctx context.Context) (err error) {
		lease, err = leases.Get(ctx, l.Lease, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		// Leader election would repeat a forbidden request.
		return l.retry("create").Do(ctx, func(ctx context.Context) error {
			lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Lease}}
			_, err := leases.Create(ctx, lease, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || !l.Ended(parse(holder)) {
		return nil
	}
	lease.Spec.HolderIdentity = ptr.To("")
	return l.retry("take over").Do(ctx, func(ctx context.Context) error {
		_, err := leases.Update(ctx, lease, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // Another process has it, or had it. Leader election waits for it, or creates it.
		}
		return err
	})
}

func (l *Lock) retry(verb string) retry.Policy {
	return l.Retry.For(fmt.Sprintf("%s Lease %s/%s in the %s", verb, l.Namespace, l.Lease, l.Cluster))
}

// remove deletes the released Lease, unless another process has it. A leftover Lease is harmless, so that errors are ignored.
func (l *Lock) remove(ctx context.Context, leases coordinationclient.LeaseInterface) {
	lease, err := leases.Get(ctx, l.Lease, metav1.GetOptions{})
	if err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
		return
	}
	unchanged := &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}
	_ = leases.Delete(ctx, l.Lease, metav1.DeleteOptions{Preconditions: unchanged})
}

func describe(h Holder) string {
	if h.PID == 0 {
		return h.Host
	}
	return fmt.Sprintf("process %d on %s", h.PID, h.Host)
}
