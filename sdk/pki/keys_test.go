package pki

import (
	"context"
	"crypto"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestKeyAlgorithmAsFlag(t *testing.T) {
	for value, known := range map[string]bool{
		"RSA-2048": true, "RSA-3072": true, "RSA-4096": true, "ECDSA-P256": true, "ECDSA-P384": true,
		"": false, "RSA": false, "RSA-1024": false, "rsa-2048": false, "ECDSA-P256 ": false, strings.Repeat("x", 1<<20): false,
	} {
		var a KeyAlgorithm
		err := a.Set(value)
		if (err == nil) != known || known && a.String() != value {
			t.Errorf("%.20q: error %v and %q, want it to be known: %t", value, err, a, known)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("%.20q: the error repeats the value", value)
		}
	}
}

func TestAlgorithm(t *testing.T) {
	cluster := func(choice string) metav1.Object {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blue"}}
		if choice != "" {
			c.Annotations = map[string]string{AlgorithmAnnotation: choice}
		}
		return c
	}
	tests := []struct {
		reason  string
		keys    *Keys
		objects []metav1.Object
		want    KeyAlgorithm
		err     string
	}{
		{reason: "no algorithm is chosen", want: ECDSA},
		{reason: "no algorithm is chosen, not even by the manager", keys: NewKeys(""), want: ECDSA},
		{reason: "the manager does", keys: NewKeys(ECDSAP384), objects: []metav1.Object{cluster("")}, want: ECDSAP384},
		{reason: "the cluster goes before the manager", keys: NewKeys(ECDSAP384), objects: []metav1.Object{cluster("RSA-3072")}, want: RSA3072},
		{reason: "the first that chooses decides", objects: []metav1.Object{cluster(""), cluster("RSA-4096"), cluster("RSA-2048")}, want: RSA4096},
		{reason: "an unknown algorithm is an error", keys: NewKeys(RSA2048), objects: []metav1.Object{cluster("RSA")},
			err: "annotation cluster.x-k8s.io/key-algorithm of Cluster default/blue: unknown key algorithm: use one of ECDSA-P256, ECDSA-P384, RSA-2048, RSA-3072, RSA-4096"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := tt.keys.algorithmFor(tt.objects...)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff([]string{string(tt.want), tt.err}, []string{string(got), text}); diff != "" {
				t.Errorf("algorithm and error -want +got:\n%s", diff)
			}
		})
	}
}

// factory generates keys slowly, in the time of a synctest bubble, and counts them.
type factory struct {
	mu   sync.Mutex
	made map[KeyAlgorithm]int
	// fail is what the next key ends with.
	fail func() error
}

const slow = 140 * time.Millisecond

func (f *factory) generate(a KeyAlgorithm) (crypto.Signer, error) {
	if fail := f.failure(); fail != nil {
		return nil, fail()
	}
	if a.rsaBits() != 0 {
		time.Sleep(slow) // the bubble's time, not the test's
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made[a]++
	return newKey(ECDSA)
}

func (f *factory) failure() func() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	fail := f.fail
	f.fail = nil
	return fail
}

func (f *factory) counts() map[KeyAlgorithm]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.made)
}

// started runs Keys until the test ends.
func started(t *testing.T, algorithm KeyAlgorithm, f *factory) *Keys {
	t.Helper()
	f.made = map[KeyAlgorithm]int{}
	k := newKeys(algorithm, clock.RealClock{}, f.generate)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- k.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return k
}

// waited returns how long it takes to get a key.
func waited(t *testing.T, k *Keys, a KeyAlgorithm) time.Duration {
	t.Helper()
	begun := time.Now()
	key, err := k.key(a)
	if err != nil || key == nil {
		t.Fatalf("key %v, error %v", key, err)
	}
	return time.Since(begun)
}

func TestKeysAheadOfNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		k := started(t, RSA2048, f)
		time.Sleep(time.Minute)
		if f.counts()[RSA2048] != stock {
			t.Fatalf("%d keys are kept, want %d", f.counts()[RSA2048], stock)
		}
		for i := range stock {
			if took := waited(t, k, RSA2048); took != 0 {
				t.Errorf("key %d took %s although it was there", i, took)
			}
		}
		if took := waited(t, k, RSA2048); took != slow {
			t.Errorf("with an empty stock a key took %s, want %s: it must not wait for the stock to fill", took, slow)
		}
		time.Sleep(time.Minute)
		if want := 2*stock + 1; f.counts()[RSA2048] != want {
			t.Errorf("%d keys generated, want %d: only the stock is refilled", f.counts()[RSA2048], want)
		}
	})
}

func TestOnlyAlgorithmsInUseAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		k := started(t, ECDSA, f)
		time.Sleep(time.Minute)
		waited(t, k, ECDSA)
		waited(t, k, ECDSAP384)
		time.Sleep(time.Minute)
		if diff := cmp.Diff(map[KeyAlgorithm]int{ECDSA: 1, ECDSAP384: 1}, f.counts()); diff != "" {
			t.Fatalf("fast keys are generated on demand, -want +got:\n%s", diff)
		}
		waited(t, k, RSA3072)
		time.Sleep(time.Minute)
		if diff := cmp.Diff(map[KeyAlgorithm]int{ECDSA: 1, ECDSAP384: 1, RSA3072: 1 + stock}, f.counts()); diff != "" {
			t.Errorf("what a cluster asked for is in use, -want +got:\n%s", diff)
		}
	})
}

func TestNoKeyIsGivenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, RSA2048, &factory{})
		time.Sleep(time.Minute)
		given := make(chan crypto.Signer, 4*stock)
		for range 4 * stock {
			go func() {
				key, err := k.key(RSA2048)
				if err != nil {
					t.Error(err)
				}
				given <- key
			}()
		}
		seen := map[crypto.Signer]bool{}
		for range 4 * stock {
			key := <-given
			if seen[key] {
				t.Error("two clusters share a key")
			}
			seen[key] = true
		}
	})
}

func TestStockLeavesTheCPUToOtherWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		f := &factory{}
		started(t, RSA2048, f)
		for f.counts()[RSA2048] < stock {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if took, want := time.Since(begun), (stock-1)*(1+restFactor)*slow; took < want {
			t.Errorf("filling the stock took %s, want at least %s", took, want)
		}
	})
}

func TestStockSurvivesFailures(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("no randomness") },
		"panic": func() error { panic("a self-test of the cryptography failed") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &factory{fail: fail}
				started(t, RSA2048, f)
				time.Sleep(afterFailure / 2)
				if f.counts()[RSA2048] != 0 {
					t.Error("it tries again without a pause")
				}
				time.Sleep(afterFailure)
				if f.counts()[RSA2048] != stock {
					t.Errorf("%d keys are kept after a failure, want %d", f.counts()[RSA2048], stock)
				}
			})
		})
	}
}
