package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/test/fault/script"
)

// inject injects a fault into a request, and calls answered with the status of the API server's response.
func (e *endpoint) inject(w http.ResponseWriter, h *http.Request, r script.Request, f *script.Fault, answered func(code int)) {
	switch {
	case f.Do == script.Touch, f.Do == script.Sicken:
		e.touch(h.Context(), r, *f)
	case f.Do.Lasts():
		e.proxy.options.Scripts.Begin(*f)
	}
	switch f.Do {
	case script.Freeze, script.Touch, script.Sicken, script.Delay, script.Cut, script.Gone, script.Travel,
		script.Unreachable, script.Blind, script.Hang, script.Flood:
		answered(e.pass(w, h, r))
		return
	case script.Suspend:
		e.suspend(w, h, r, f, answered)
		return
	case script.KillBefore:
		e.proxy.kill()
	case script.Refuse:
	case script.BlackHole:
		pause(h.Context(), f.Duration())
	case script.Reject:
		status(http.StatusInternalServerError, metav1.StatusReasonInternalError).write(w)
		return
	default:
		e.injectAfter(w, h, r, f, answered)
		return
	}
	panic(http.ErrAbortHandler)
}

// injectAfter forwards the request first.
func (e *endpoint) injectAfter(w http.ResponseWriter, h *http.Request, r script.Request, f *script.Fault, answered func(code int)) {
	a, err := e.forward(h, r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answered(a.code)
	switch f.Do {
	case script.KillAfter, script.TravelRestart:
		e.proxy.kill()
		panic(http.ErrAbortHandler)
	case script.TimeOut:
		pause(h.Context(), f.Duration())
		status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout).write(w)
	case script.Fail500:
		status(http.StatusInternalServerError, metav1.StatusReasonInternalError).write(w)
	case script.Conflict:
		status(http.StatusConflict, metav1.StatusReasonConflict).write(w)
	case script.TooMany:
		tooMany := status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		tooMany.header.Set("Retry-After", "1")
		tooMany.write(w)
	case script.Stall:
		w.Header().Set("Content-Type", a.header.Get("Content-Type"))
		w.WriteHeader(a.code)
		_, _ = w.Write(a.body[:len(a.body)/2]) // The connection breaks anyway.
		_ = http.NewResponseController(w).Flush()
		pause(h.Context(), f.Duration())
		panic(http.ErrAbortHandler)
	default: // LoseAnswer
		panic(http.ErrAbortHandler)
	}
}

// status returns an error response.
func status(code int, reason metav1.StatusReason) *answer {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: fmt.Sprintf("injected fault: %s", reason),
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return &answer{code: code, header: http.Header{"Content-Type": {"application/json"}}, body: body}
}

// suspend suspends the manager, and forwards its request when it resumes.
func (e *endpoint) suspend(w http.ResponseWriter, h *http.Request, r script.Request, f *script.Fault, answered func(code int)) {
	body, err := io.ReadAll(h.Body) // A suspended manager sends no more of it.
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	h.Body = io.NopCloser(bytes.NewReader(body))
	if err := e.proxy.options.Suspend(); err != nil {
		e.proxy.Fail(err)
		panic(http.ErrAbortHandler)
	}
	pause(h.Context(), f.Duration())
	a, err := e.forward(h, r)
	if problem := e.proxy.options.Resume(); problem != nil {
		e.proxy.Fail(problem)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answered(a.code)
	a.write(w)
}
