import { choose } from "./choose.js";
import { copy } from "./copy.js";
import { follow } from "./live.js";
import { schedules } from "./schedule.js";
import { showTimes } from "./times.js";

showTimes(document);
setInterval(() => showTimes(document), 1000);
choose();
copy();
schedules();
follow(document.body.dataset.livePath);
