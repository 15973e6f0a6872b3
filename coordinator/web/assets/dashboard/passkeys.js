// Passkeys: a form with `data-passkey` ("get" or "create") asks the browser's authenticator, and is sent with its
// answer. Loaded on the screens with such a form alone. Without script, or without passkeys, the form stays hidden.
(() => {
  "use strict";
  const api = window.PublicKeyCredential;
  if (!api || !navigator.credentials) return;

  // Time after which an open ceremony is begun again (milliseconds): the server forgets it after five minutes.
  const RENEW = 4 * 60 * 1000;
  const CANCELLED = "No passkey was used. Try again, or choose another way.";
  const FAULTS = {
    AbortError: CANCELLED,
    NotAllowedError: CANCELLED,
    InvalidStateError: "This device has one of your passkeys already.",
    SecurityError: "Passkeys don't work at this address. Open the dashboard at its own address.",
  };
  let waiting = null;

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (it) => it.charCodeAt(0));
  const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const withIds = (list) => list?.map((it) => ({ ...it, id: bytes(it.id) }));
  // For browsers without the parsers and writers of Web Authentication, level 3.
  const parse = (options, isNew) => {
    const native = isNew ? api.parseCreationOptionsFromJSON : api.parseRequestOptionsFromJSON;
    if (native) return native.call(api, options);
    const parsed = { ...options, challenge: bytes(options.challenge) };
    if (isNew) parsed.user = { ...options.user, id: bytes(options.user.id) };
    for (const list of ["allowCredentials", "excludeCredentials"]) {
      if (options[list]) parsed[list] = withIds(options[list]);
    }
    return parsed;
  };
  const write = (credential) => {
    if (credential.toJSON) return credential.toJSON();
    const { id, rawId, type, response } = credential;
    const written = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (response[name]) written[name] = base64(response[name]);
    }
    if (response.getTransports) written.transports = response.getTransports();
    return { id, rawId: base64(rawId), type, response: written, clientExtensionResults: {} };
  };

  const say = (form, text) => {
    const line = form.querySelector("[role=alert]");
    line.hidden = !text;
    line.querySelector("span").textContent = text;
  };
  const begin = async (form) => {
    const body = new URLSearchParams(new FormData(form));
    const response = await fetch(form.dataset.options, { method: "POST", body });
    // The identity is to be confirmed first, or the session has ended.
    if (response.redirected) {
      location.assign(response.url);
      return null;
    }
    if (response.ok) return response.json();
    const seconds = response.headers.get("retry-after");
    throw new Error(seconds ? `Too many tries. Wait ${seconds} seconds.` : "Reload the page, and try again.");
  };
  const ask = async (form, more) => {
    const isNew = form.dataset.passkey === "create";
    const begun = await begin(form);
    if (!begun) return;
    const publicKey = parse(begun.options, isNew);
    const credential = await navigator.credentials[isNew ? "create" : "get"]({ publicKey, ...more });
    form.elements.ceremony.value = begun.ceremony;
    form.elements.credential.value = JSON.stringify(write(credential));
    const keep = document.querySelector("input[type=checkbox][name=keep]");
    if (keep && form.elements.keep) form.elements.keep.disabled = !keep.checked;
    form.submit();
  };

  // The browser offers passkeys in the email field. The request waits until one is chosen, and is begun again in time,
  // but not while the person looks elsewhere: they may be unlocking their passkeys there.
  const offer = (form) => {
    let began = 0;
    const renew = async () => {
      if (document.hidden || Date.now() - began < RENEW) return;
      began = Date.now();
      waiting?.abort();
      const { signal } = waiting = new AbortController();
      try {
        await ask(form, { mediation: "conditional", signal });
      } catch {
        // It was begun again, or another way was chosen.
      }
    };
    setInterval(renew, RENEW / 4);
    document.addEventListener("visibilitychange", renew);
    form.addEventListener("cancelled", () => {
      began = 0;
      renew();
    });
    renew();
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const button = form.querySelector("button");
      say(form, "");
      waiting?.abort();
      button.disabled = true;
      try {
        await ask(form, {});
      } catch (error) {
        say(form, FAULTS[error.name] ?? error.message);
        form.dispatchEvent(new Event("cancelled"));
      }
      button.disabled = false;
    });
    if ("offer" in form.dataset) api.isConditionalMediationAvailable?.().then((is) => is && offer(form));
  }
})();
