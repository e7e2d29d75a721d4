// Package job runs what takes minutes in the background of a manager, so that no worker of a controller waits for it: a job
// is started by a reconcile, and its end triggers another one.
//
// A job that fails is started again by a reconcile after a pause, which doubles with each failure: nothing announces that another
// attempt may succeed.
//
// Jobs live in memory. After a restart of the process, they are started again, so they must be idempotent: a job asks whether its
// work was done before, or is being done.
//
// What does not belong here: what jobs do.
package job

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// Key identifies a job.
type Key struct {
	// Object is reconciled when the job ends.
	Object types.NamespacedName
	// UID tells objects of the same name apart.
	UID types.UID
	// Name is what the job does, such as "bootstrap".
	Name string
}

// The limits of the pause after a failure.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// State is the state of a job.
type State[T any] struct {
	// Running is whether the job has not ended; all other fields are then empty.
	Running bool
	// Result and Err are what it returned.
	Result T
	Err    error
	// Ended is when.
	Ended time.Time
	// RetryIn is after which time Run starts a job that has failed again.
	RetryIn time.Duration
}

// Jobs are the jobs of a manager. Add it to the manager, which calls Start.
type Jobs struct {
	clock clock.PassiveClock
	// ctx is the lifetime of all jobs, until Start returns.
	ctx  context.Context //nolint:containedctx // jobs outlive reconciles
	stop context.CancelFunc

	lock   sync.Mutex
	jobs   map[Key]*job
	queues []workqueue.TypedRateLimitingInterface[reconcile.Request]
	active sync.WaitGroup
}

type job struct {
	cancel context.CancelFunc
	ended  bool
	result any
	err    error
	at     time.Time
	// pause is the pause after the next failure.
	pause time.Duration
	// due is when a job that has failed is started again.
	due time.Time
}

// New returns Jobs without any job.
func New(c clock.PassiveClock) *Jobs {
	ctx, stop := context.WithCancel(context.Background())
	return &Jobs{clock: c, ctx: ctx, stop: stop, jobs: map[Key]*job{}}
}

// Start waits until ctx ends, and then ends all jobs. It implements manager.Runnable.
func (j *Jobs) Start(ctx context.Context) error {
	<-ctx.Done()
	j.lock.Lock()
	j.stop() // From now on, Run does not start jobs.
	j.lock.Unlock()
	j.active.Wait()
	return nil
}

// Source returns a source of requests for the objects whose jobs end.
func (j *Jobs) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		j.lock.Lock()
		defer j.lock.Unlock()
		j.queues = append(j.queues, queue)
		return nil
	})
}

// Run starts a job unless there is one with the key, and returns its state. A job that has ended is kept until Forget, so that what
// it returned is not lost if a reconcile fails. One that has failed is started again after the pause.
func Run[T any](j *Jobs, key Key, do func(ctx context.Context) (T, error)) State[T] {
	j.lock.Lock()
	defer j.lock.Unlock()
	found, now := j.jobs[key], j.clock.Now()
	again := found != nil && found.ended && found.err != nil && !now.Before(found.due)
	if (found == nil || again) && j.ctx.Err() != nil {
		return State[T]{Running: true} // The process ends.
	}
	if found == nil || again {
		ctx, cancel := context.WithCancel(j.ctx)
		started := &job{cancel: cancel, pause: firstPause}
		if again {
			started.pause = min(2*found.pause, lastPause)
		}
		found, j.jobs[key] = started, started
		j.active.Go(func() {
			defer cancel()
			result, err := recovering(ctx, key.Name, do)
			j.end(key, started, result, err)
		})
	}
	if !found.ended {
		return State[T]{Running: true}
	}
	result, _ := found.result.(T)
	state := State[T]{Result: result, Err: found.err, Ended: found.at}
	if found.err != nil {
		state.RetryIn = found.due.Sub(now)
	}
	return state
}

// Do runs short work in the caller, with the pauses of jobs after failures: while a pause lasts, it returns the last error without
// running anything. That matters for work that triggers a reconcile even if it fails.
func Do(j *Jobs, key Key, do func() error) State[struct{}] {
	last, pause := j.lastFailure(key)
	if last.RetryIn > 0 {
		return last
	}
	err := do()
	j.lock.Lock()
	defer j.lock.Unlock()
	if err == nil {
		delete(j.jobs, key)
		return State[struct{}]{}
	}
	now := j.clock.Now()
	j.jobs[key] = &job{cancel: func() {}, ended: true, err: err, at: now, pause: pause, due: now.Add(pause)}
	return State[struct{}]{Err: err, Ended: now, RetryIn: pause}
}

// lastFailure returns the state of a job after its last failure, and the pause after the next one.
func (j *Jobs) lastFailure(key Key) (State[struct{}], time.Duration) {
	j.lock.Lock()
	defer j.lock.Unlock()
	found := j.jobs[key]
	if found == nil {
		return State[struct{}]{}, firstPause
	}
	return State[struct{}]{Err: found.err, Ended: found.at, RetryIn: found.due.Sub(j.clock.Now())}, min(2*found.pause, lastPause)
}

// Has reports whether there is a job with the key, running or ended.
func (j *Jobs) Has(key Key) bool {
	j.lock.Lock()
	defer j.lock.Unlock()
	return j.jobs[key] != nil
}

// RetryAll ends the pauses of all jobs that have failed: what they need may be available again.
func (j *Jobs) RetryAll() {
	j.lock.Lock()
	defer j.lock.Unlock()
	for _, found := range j.jobs {
		found.due = time.Time{}
	}
}

func recovering[T any](ctx context.Context, name string, do func(ctx context.Context) (T, error)) (result T, err error) {
	defer failsafe.Recover(name, &err)
	return do(ctx)
}

func (j *Jobs) end(key Key, ended *job, result any, err error) {
	j.lock.Lock()
	defer j.lock.Unlock()
	ended.ended, ended.result, ended.err, ended.at = true, result, err, j.clock.Now()
	ended.due = ended.at.Add(ended.pause)
	if j.jobs[key] != ended {
		return // It was forgotten.
	}
	for _, queue := range j.queues {
		queue.Add(reconcile.Request{NamespacedName: key.Object})
	}
}

// Forget ends a job if it is running, without waiting for it, and forgets it: Run starts it again.
func (j *Jobs) Forget(key Key) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if found := j.jobs[key]; found != nil {
		found.cancel()
		delete(j.jobs, key)
	}
}

// ForgetAll is Forget for all jobs of an object.
func (j *Jobs) ForgetAll(object types.NamespacedName) {
	j.lock.Lock()
	defer j.lock.Unlock()
	for key, found := range j.jobs {
		if key.Object == object {
			found.cancel()
			delete(j.jobs, key)
		}
	}
}

// Wait waits until no job is running, for tests.
func (j *Jobs) Wait() { j.active.Wait() }
