"""The only script of a page: buttons that copy commands, and everything unfolded on paper.

Where a viewer forbids scripts, as those of some CI systems do, the page lacks only the buttons: the
script itself adds them. It contains neither "<" nor "&", so that the page is well-formed XML too.
"""

from __future__ import annotations

SCRIPT = """
"use strict";
(function () {
  var page = document.querySelector(".whygpu");
  var status = document.createElement("p");
  status.className = "hidden";
  status.setAttribute("role", "status");
  page.querySelector("main").appendChild(status);

  function select(box) {
    var range = document.createRange();
    range.selectNodeContents(box);
    var selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  // A page that is served without TLS has no clipboard, and a frame may not be allowed to use it.
  function copyBySelection(box) {
    select(box);
    return document.execCommand("copy");
  }

  function add(box) {
    var text = box.querySelector("code");
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the command " + text.textContent);
    function done(worked) {
      button.textContent = worked ? "Copied" : "Selected";
      status.textContent = worked ? "Copied" : "Selected, copy it with the keyboard";
      window.setTimeout(function () { button.textContent = "Copy"; }, 2000);
    }
    button.addEventListener("click", function () {
      if (!navigator.clipboard) {
        done(copyBySelection(text));
        return;
      }
      navigator.clipboard.writeText(text.textContent).then(
        function () { done(true); },
        function () { done(copyBySelection(text)); }
      );
    });
    box.appendChild(button);
  }

  page.querySelectorAll(".command").forEach(add);

  var folded = [];
  window.addEventListener("beforeprint", function () {
    folded = Array.from(page.querySelectorAll("details:not([open])"));
    folded.forEach(function (part) { part.open = true; });
  });
  window.addEventListener("afterprint", function () {
    folded.forEach(function (part) { part.open = false; });
  });
})();
"""
