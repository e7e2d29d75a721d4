package script

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func patch(namespace, name string) Request {
	return Request{Manager: "m", Run: namespace, Namespace: namespace, Verb: "patch", Resource: "machines", Name: name}
}

func TestFaultRoundTrip(t *testing.T) {
	for _, text := range []string{"m:patch:machines#3=kill-after", "m:create:@secrets#1=black-hole(5s)", "m:patch:machines#3=freeze(2s)>m2:watch:machines+2", "m:patch:machines#1=unreachable>:connect:@"} {
		f, err := Parse(text)
		if err != nil || f.String() != text {
			t.Errorf("%s is parsed as %s, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "m:patch:machines=kill-after", "m:patch:machines#0=kill-after", "m:patch#1=kill-after", "m:patch:machines#1=stall(x)", "m:patch:machines#1=explode"} {
		if f, err := Parse(text); err == nil {
			t.Errorf("%q is parsed as %s", text, f)
		}
	}
}

func TestNthRequestGetsFault(t *testing.T) {
	s := New("n", Fault{When: Kind{Manager: "m", Verb: "patch", Resource: "machines"}, Nth: 2, Do: KillAfter})
	if _, f := s.Next(patch("n", "early")); f != nil {
		t.Errorf("fault before the script is armed: %v", f)
	}
	s.Arm()
	var injected []string
	for _, r := range []Request{patch("n", "1"), patch("other", "x"), patch("n", "2"), patch("n", "3")} {
		record, f := s.Next(r)
		if f != nil {
			injected = append(injected, r.Name)
		}
		s.Answered(record, 200)
	}
	if diff := cmp.Diff([]string{"2"}, injected); diff != "" {
		t.Errorf("requests with a fault (-want +got):\n%s", diff)
	}
	var written []Record
	for _, r := range s.Records() {
		r.At, r.Fault = time.Time{}, nil
		written = append(written, r)
	}
	want := []Record{{Request: patch("n", "1"), Nth: 1, Code: 200}, {Request: patch("n", "2"), Nth: 2, Code: 200}, {Request: patch("n", "3"), Nth: 3, Code: 200}}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if s.Injected() != 1 {
		t.Errorf("%d faults were injected, want 1", s.Injected())
	}
}

func TestSet(t *testing.T) {
	var set Set
	pending, active := New("a"), New("b")
	set.Activate(pending)
	set.Activate(active)
	for namespace, want := range map[string]*Script{"a": pending, "b": active, "": active, "c": nil} {
		if got := set.Find(namespace); got != want {
			t.Errorf("the script of %q is %p, want %p", namespace, got, want)
		}
	}
	set.Remove(active)
	if set.Find("") != nil || set.Find("b") != nil {
		t.Error("a removed script is still active")
	}
}

// TestBeginWithoutActiveScript: the run of a fault may end before the fault begins. It must not affect the next run.
func TestBeginWithoutActiveScript(t *testing.T) {
	var set Set
	kind := Kind{Verb: "watch", Resource: "machines"}
	saved := 0
	set.OnTravel(func(Kind) { saved++ })
	fault := Fault{On: kind, Do: Travel, For: time.Hour}
	set.Begin(fault)
	ended := New("a")
	set.Activate(ended)
	set.Remove(ended)
	set.Begin(fault)
	if set.Ongoing().HasStale(kind) || saved != 0 {
		t.Errorf("a fault without a script has begun, and %d lists were saved", saved)
	}
	set.Activate(New("b"))
	set.Begin(fault)
	if !set.Ongoing().HasStale(kind) || saved != 1 {
		t.Errorf("a fault of the active script has not begun; %d lists were saved, want 1", saved)
	}
}
