// Keeps a page of the staff console up to date: fetches what is new, puts it in place, and leaves alone what is typed.
(() => {
  "use strict";

  const RETRY = 4000;
  const QUEUE_EVERY = 2000;
  const lost = document.getElementById("lost");
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const seen = () => new Promise((done) => {
    if (!document.hidden) return done();
    document.addEventListener("visibilitychange", function look() {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      done();
    });
  });

  const tell = (text) => {
    if (!lost || (lost.textContent === text && !lost.hidden)) return;
    lost.textContent = text;
    lost.hidden = !text;
  };

  // ── times ────────────────────────────────────────────────────────────────────────────────────────────────────
  const begun = new WeakMap();
  const words = (seconds) => {
    const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
    if (hours) return `${hours} h ${minutes % 60} min`;
    return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
  };
  const tick = () => {
    for (const one of document.querySelectorAll("[data-waited]")) {
      if (!begun.has(one)) begun.set(one, performance.now());
      const said = words(Number(one.dataset.waited) + Math.floor((performance.now() - begun.get(one)) / 1000));
      if (one.textContent !== said) one.textContent = said;
    }
  };
  const local = (within) => {
    for (const one of within.querySelectorAll("time[datetime]")) {
      const at = new Date(one.dateTime);
      if (Number.isNaN(at.valueOf())) continue;
      one.title = one.textContent;
      one.textContent = at.toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
    }
  };
  setInterval(tick, 1000);
  tick();
  local(document);

  // ── fetching ─────────────────────────────────────────────────────────────────────────────────────────────────
  // null: nothing new.  undefined: it will never come; the page says why.
  const fetched = async (url) => {
    const answer = await fetch(url, { redirect: "error", cache: "no-store" });
    if (answer.status === 204) return null;
    if (answer.status === 403) {
      tell("You are not signed in here any more. Copy what you have typed, then open this page again.");
      return undefined;
    }
    if (answer.status === 404) {
      tell("This conversation is not there any more.");
      return undefined;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };
  const follow = async (ask, take, every) => {
    for (;;) {
      await seen();
      let found;
      try {
        found = await fetched(ask());
        if (found === undefined) return;
        tell("");
      } catch {
        tell("The connection is lost. Trying again.");
        await pause(RETRY);
        continue;
      }
      if (found && take(found) === false) return;
      if (every) await pause(every);
    }
  };

  // ── the queue ────────────────────────────────────────────────────────────────────────────────────────────────
  const queue = document.getElementById("queue");
  if (queue) {
    const title = document.title;
    const count = (within) => within.querySelector("[data-count]").dataset.count;
    const entitle = () => { document.title = count(queue) === "0" ? title : `(${count(queue)}) ${title}`; };
    const without = (text) => text.replace(/data-waited="\d+">[^<]*/g, "").replace(/\s+/g, " ");
    let shown = without(queue.innerHTML);
    entitle();
    follow(() => queue.dataset.news, (found) => {
      const now = without(found.body.innerHTML);
      if (now === shown) return;
      shown = now;
      const held = queue.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      queue.replaceChildren(...document.importNode(found.body, true).childNodes);
      tick();
      entitle();
      if (held) queue.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus();
    }, QUEUE_EVERY);
  }

  // ── a conversation ───────────────────────────────────────────────────────────────────────────────────────────
  const events = document.getElementById("events");
  if (events && events.dataset.news) {
    const panel = document.getElementById("panel");
    const kept = `papaver ${events.dataset.news}`;
    const typed = () => panel.querySelector("#say");
    const settle = () => {
      for (const one of panel.querySelectorAll("[data-keys]")) one.hidden = false;
      const field = typed();
      if (field && !field.value) field.value = sessionStorage.getItem(kept) ?? "";
    };
    panel.addEventListener("input", (event) => {
      if (event.target === typed()) sessionStorage.setItem(kept, event.target.value);
    });
    // What was typed is forgotten once the page that comes back says that it was said, under the key of its form.
    const asked = new URLSearchParams(location.search);
    if (asked.has("said") && asked.get("said") === sessionStorage.getItem(`${kept} key`)) {
      sessionStorage.removeItem(kept);
      sessionStorage.removeItem(`${kept} key`);
    }
    if (asked.has("said")) history.replaceState(null, "", location.pathname + location.hash);
    panel.addEventListener("submit", (event) => {
      if (event.target.contains(typed())) sessionStorage.setItem(`${kept} key`, event.target.elements.key.value);
    });
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target === typed()) {
        event.target.form.requestSubmit();
      }
    });
    settle();
    const below = () => window.innerHeight + window.scrollY >= document.body.scrollHeight - 160;
    follow(() => `${events.dataset.news}?after=${events.dataset.seq}`, (found) => {
      const news = found.getElementById("news");
      if (!news) return false;
      const following = below();
      events.dataset.seq = news.dataset.seq;
      local(news);
      events.append(...document.importNode(news.querySelector("ol"), true).children);
      const standing = document.getElementById("standing");
      standing.replaceChildren(...document.importNode(news.querySelector("#standing"), true).childNodes);
      if (events.dataset.panel !== news.dataset.panel) {
        events.dataset.panel = news.dataset.panel;
        const draft = typed()?.value;
        panel.replaceChildren(...document.importNode(news.querySelector("#panel"), true).childNodes);
        settle();
        if (draft && !typed()) {
          const rest = document.createElement("p");
          rest.className = "notice warning text";
          rest.textContent = `Not sent: ${draft}`;
          panel.append(rest);
        }
      }
      tick();
      if (following) window.scrollTo({ top: document.body.scrollHeight });
      return news.dataset.panel !== "closed";
    });
    if (!location.hash && typed()) window.scrollTo({ top: document.body.scrollHeight });
  }
})();
